"""Data for training: windows of frames, latents of a kept encoder, and later frames as goals."""
