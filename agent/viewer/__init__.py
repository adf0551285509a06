"""The window, the video and everything that draws."""
