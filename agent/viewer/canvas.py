"""Something to draw on without a display: lines by OpenCV and text by pygame on the same pixels, and the colours."""

import contextlib
import functools
import io
import os
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import cv2
import numpy as np
from PIL import ImageFont

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
import pygame  # everyone takes it from here, so that its greeting stays out of the output

Colour = tuple[int, int, int]
Align = Literal["left", "right", "centre"]

BACK: Colour = (17, 20, 27)
PANEL: Colour = (25, 30, 40)
EDGE: Colour = (41, 48, 62)
FAINT: Colour = (94, 104, 124)
MUTED: Colour = (146, 156, 176)
INK: Colour = (231, 235, 243)
REAL: Colour = (110, 168, 254)
IMAGINED: Colour = (255, 158, 74)
GOAL: Colour = (74, 201, 142)
ALARM: Colour = (255, 107, 107)

SMALL, BODY, LARGE, TITLE = 12, 14, 17, 22
BITS = 4  # OpenCV draws at a sixteenth of a pixel


class Box(NamedTuple):
    """A rectangle in pixels."""

    x: int
    y: int
    w: int
    h: int

    @property
    def right(self) -> int:
        return self.x + self.w

    @property
    def bottom(self) -> int:
        return self.y + self.h

    def inset(self, left: int, top: int, right: int, bottom: int) -> "Box":
        """What is left inside these margins."""
        return Box(self.x + left, self.y + top, self.w - left - right, self.h - top - bottom)

    def contains(self, x: float, y: float) -> bool:
        return self.x <= x < self.right and self.y <= y < self.bottom


class Canvas:
    """Pixels uint8 `(h, w, 3)` and a pygame surface that shares them."""

    def __init__(self, size: tuple[int, int]):
        self.pixels = _blank(size).copy()
        self.surface = pygame.image.frombuffer(self.pixels.reshape(-1).data, size, "RGB")

    def fill(self, box: Box, colour: Colour) -> None:
        self.pixels[max(box.y, 0) : box.bottom, max(box.x, 0) : box.right] = colour

    def panel(self, box: Box) -> None:
        """A quiet rounded plate to draw on."""
        pygame.draw.rect(self.surface, PANEL, box, border_radius=8)
        pygame.draw.rect(self.surface, EDGE, box, 1, border_radius=8)

    def picture(self, picture: np.ndarray, box: Box, frame: Colour | None = None) -> None:
        """A square picture scaled to fill `box`, with a `frame` round it."""
        mode = cv2.INTER_AREA if picture.shape[0] > box.h else cv2.INTER_LINEAR
        scaled = picture if picture.shape[:2] == (box.h, box.w) else cv2.resize(picture, box[2:], interpolation=mode)
        self.pixels[box.y : box.bottom, box.x : box.right] = scaled
        if frame:
            pygame.draw.rect(self.surface, frame, (box.x - 2, box.y - 2, box.w + 4, box.h + 4), 2, border_radius=3)

    def lines(
        self, paths: np.ndarray, colour: Colour, width: int = 1, alpha: float = 1.0, clip: Box | None = None
    ) -> None:
        """Anti-aliased lines through points `(N, P, 2)` in pixels, seen through by `1 - alpha`, cut off at `clip`."""
        with self._layer(alpha, clip) as (layer, corner):
            cv2.polylines(layer, list(_fixed(paths - corner)), False, colour, width, cv2.LINE_AA, BITS)

    def area(self, outline: np.ndarray, colour: Colour, alpha: float, clip: Box) -> None:
        """A filled polygon `(P, 2)`, seen through by `1 - alpha`."""
        with self._layer(alpha, clip) as (layer, corner):
            cv2.fillPoly(layer, [_fixed(outline - corner)], colour, cv2.LINE_AA, BITS)

    @contextlib.contextmanager
    def _layer(self, alpha: float, clip: Box | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pixels to draw on that are mixed with those below afterwards, and where their corner is."""
        box = clip or Box(0, 0, self.pixels.shape[1], self.pixels.shape[0])
        below = self.pixels[box.y : box.bottom, box.x : box.right]
        layer = below if alpha == 1 else below.copy()
        yield layer, np.array(box[:2])
        if alpha != 1:
            cv2.addWeighted(layer, alpha, below, 1 - alpha, 0, dst=below)

    def dot(self, x: float, y: float, radius: float, colour: Colour, width: int = -1) -> None:
        """A disc, or with a `width` a ring."""
        centre = _fixed(np.array([x, y])).tolist()
        cv2.circle(self.pixels, centre, round(radius * 2**BITS), colour, width, cv2.LINE_AA, BITS)

    def text(
        self, words: str, x: float, y: float, size: int = BODY, colour: Colour = INK, align: Align = "left"
    ) -> int:
        """One line of text whose top is at `y`; returns its width."""
        rendered = font(size).render(words, True, colour)
        left = {"left": x, "right": x - rendered.get_width(), "centre": x - rendered.get_width() / 2}[align]
        self.surface.blit(rendered, (round(left), round(y)))
        return rendered.get_width()

    def key(self, entries: Sequence[tuple[str, Colour]], right: float, y: float) -> None:
        """Names of lines with their colours, the last of them ending at `right`."""
        for name, colour in reversed(entries):
            right -= self.text(name, right, y, SMALL, MUTED, "right") + 6
            self.lines(np.array([[[right - 14, y + 8], [right, y + 8]]]), colour, 2)
            right -= 26

    def chip(self, words: str, right: float, y: float, colour: Colour) -> int:
        """A word on a rounded plate that ends at `right`; returns how much room it took."""
        width = font(SMALL).size(words)[0] + 16
        pygame.draw.rect(self.surface, colour, (right - width, y, width, 20), border_radius=10)
        self.text(words, right - width / 2, y + 3, SMALL, BACK, "centre")
        return width + 8


@functools.cache
def _blank(size: tuple[int, int]) -> np.ndarray:
    """Kept, because to copy pixels is much quicker than to colour them."""
    return np.tile(np.array(BACK, np.uint8), (size[1], size[0], 1))


@functools.cache
def font(size: int) -> pygame.font.Font:
    """Aileron, which Pillow carries: the same letters on every machine."""
    pygame.font.init()
    aileron = ImageFont.load_default(size)
    assert isinstance(aileron, ImageFont.FreeTypeFont)
    assert isinstance(aileron.path, io.BytesIO)
    return pygame.font.Font(io.BytesIO(aileron.path.getvalue()), size)


def wrap(words: str, width: int, size: int) -> Sequence[str]:
    """`words` broken into lines of at most `width` pixels."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font(size).size(longer)[0] > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _fixed(points: np.ndarray) -> np.ndarray:
    """Pixels as OpenCV's fixed-point numbers, kept within what it can hold."""
    return np.round(np.clip(points, -4000, 8000) * 2**BITS).astype(np.int32)
