"""The screen: whether there is one, and a window on it that passes keys and mouse on and shows the newest frame."""

import os
import sys
import time

import numpy as np

from agent.viewer.app import Viewer
from agent.viewer.canvas import BACK, Box, Canvas, pygame
from agent.viewer.frame import HEIGHT, WIDTH

FPS = 30
KEY_NAMES = {
    pygame.K_RIGHT: "ArrowRight",
    pygame.K_LEFT: "ArrowLeft",
    pygame.K_UP: "ArrowUp",
    pygame.K_DOWN: "ArrowDown",
    pygame.K_TAB: "Tab",
    pygame.K_ESCAPE: "Escape",
    pygame.K_KP_PLUS: "+",
    pygame.K_KP_MINUS: "-",
}
"""Keys that pygame calls by other names than `controls` does."""


class Window:
    """A viewer on the screen: `tick` passes on what the person did and shows the newest frame, `run` repeats it."""

    def __init__(self, viewer: Viewer):
        self.viewer = viewer
        self.frames_per_second = 0.0
        """Of the whole run."""
        open_window(f"QQWorld {viewer.task.name}")
        self._clock = pygame.time.Clock()

    def run(self) -> None:
        """Show the sequence until it is over or the window is closed; raises what went wrong behind it."""
        playback, started, ticks = self.viewer.playback, time.perf_counter(), 0
        playback.start()
        try:
            while not self.viewer.closed and not playback.over:
                self.tick()
                self._clock.tick(FPS)
                ticks += 1
        finally:
            self.frames_per_second = ticks / (time.perf_counter() - started)
            playback.close()
            pygame.display.quit()
        if playback.error:
            raise playback.error

    def tick(self) -> None:
        """One frame of the window."""
        for event in pygame.event.get():
            self.handle(event)
        self.viewer.update(round(self._clock.get_fps()), letterbox(pygame.display.get_window_size()).w / WIDTH)
        if self.viewer.playback.canvas is not None:
            show(self.viewer.playback.canvas)

    def handle(self, event: pygame.event.Event) -> None:
        """One key, click, drag or turn of the wheel."""
        if event.type == pygame.QUIT:
            self.viewer.quit()
        elif event.type == pygame.KEYDOWN:
            self.viewer.key(key_name(event.key))
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            self.viewer.press(frame_point(event.pos))
        elif event.type == pygame.MOUSEMOTION:
            self.viewer.drag(frame_point(event.pos))
        elif event.type == pygame.MOUSEBUTTONUP and event.button == 1:
            self.viewer.release(frame_point(event.pos))
        elif event.type == pygame.MOUSEWHEEL:
            self.viewer.wheel(frame_point(pygame.mouse.get_pos()), event.y)


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
    fits = canvas.surface.get_size() == place[2:]  # not while a frame of another size is still shown
    window.fill(BACK)
    window.blit(canvas.surface if fits else pygame.transform.smoothscale(canvas.surface, place[2:]), place[:2])
    pygame.display.flip()


def key_name(code: int) -> str:
    """The name that `controls` has for one of pygame's keys."""
    return KEY_NAMES.get(code) or pygame.key.name(code)


def frame_point(position: tuple[int, int]) -> np.ndarray:
    """A position in the window as one in the frame."""
    window = pygame.display.get_surface()
    place = letterbox(window.get_size() if window else (WIDTH, HEIGHT))
    return (np.array(position, float) - place[:2]) * WIDTH / place.w


def letterbox(size: tuple[int, int]) -> Box:
    """Where the frame lies in a window of this size: as large as it fits, in the middle."""
    scale = min(size[0] / WIDTH, size[1] / HEIGHT)
    wide = max(1, round(WIDTH * scale))
    high = max(1, round(HEIGHT * (wide / WIDTH)))  # as a frame of this scale is drawn
    return Box((size[0] - wide) // 2, (size[1] - high) // 2, wide, high)
