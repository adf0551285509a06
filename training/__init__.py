"""Training: the objectives, data windows, the trainer and its diagnostics. It reads files, never simulators."""
