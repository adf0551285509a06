"""Data for training: windows of frames, and latents of a kept encoder."""
