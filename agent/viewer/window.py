"""The screen: whether there is one, a window on it, and where a frame lies in that window."""

import os
import sys

import numpy as np

from agent.viewer.canvas import BACK, Box, Canvas, pygame
from agent.viewer.frame import HEIGHT, WIDTH


def has_display() -> bool:
    """Whether there is a screen for a window that someone could see."""
    if os.environ.get("SDL_VIDEODRIVER") in ("dummy", "offscreen"):
        return False
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        pygame.display.init()
    except pygame.error:
        return False
    return True


def open_window(title: str) -> None:
    """A window that fits the screen."""
    if sys.platform == "linux":  # SDL would take OpenGL to a plain picture, which is slow where that is emulated
        os.environ.setdefault("SDL_FRAMEBUFFER_ACCELERATION", "0")
    pygame.display.init()
    wide, high = min(pygame.display.get_desktop_sizes() or [(WIDTH, HEIGHT)])
    scale = min(1.0, 0.95 * wide / WIDTH, 0.9 * high / HEIGHT)
    pygame.display.set_mode((round(scale * WIDTH), round(scale * HEIGHT)), pygame.RESIZABLE)
    pygame.display.set_caption(title)


def show(canvas: Canvas) -> None:
    """Fill the window with a frame, as large as it fits."""
    window = pygame.display.get_surface()
    if window is None:
        return
    place = letterbox(window.get_size())
    fits = place.w == WIDTH
    window.fill(BACK)
    window.blit(canvas.surface if fits else pygame.transform.smoothscale(canvas.surface, place[2:]), place[:2])
    pygame.display.flip()


def frame_point(position: tuple[int, int]) -> np.ndarray:
    """A position in the window as one in the frame."""
    window = pygame.display.get_surface()
    place = letterbox(window.get_size() if window else (WIDTH, HEIGHT))
    return (np.array(position, float) - place[:2]) * WIDTH / place.w


def letterbox(size: tuple[int, int]) -> Box:
    """Where the frame lies in a window of this size: as large as it fits, in the middle."""
    scale = min(size[0] / WIDTH, size[1] / HEIGHT)
    wide, high = max(1, round(WIDTH * scale)), max(1, round(HEIGHT * scale))
    return Box((size[0] - wide) // 2, (size[1] - high) // 2, wide, high)
