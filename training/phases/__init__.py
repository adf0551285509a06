"""What is learned in turn: encoder and predictor, then proposals."""
