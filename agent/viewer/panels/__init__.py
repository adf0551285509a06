"""The parts of a frame, each drawn into its box."""
