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
    """Pixels uint8 `(h, w, 3)` and a pygame surface that shares them.

    Everyone draws in units of `size`; there are `scale` pixels to a unit.
    """

    def __init__(self, size: tuple[int, int], scale: float = 1.0):
        self.size = size
        self.scale = scale
        drawn = (round(size[0] * scale), round(size[1] * scale))
        self.pixels = _blank(drawn).copy()
        self.surface = pygame.image.frombuffer(self.pixels.reshape(-1).data, drawn, "RGB")

    def box(self, box: Box) -> Box:
        """A box in pixels."""
        x, y, right, bottom = (round(edge * self.scale) for edge in (box.x, box.y, box.right, box.bottom))
        return Box(x, y, right - x, bottom - y)

    def length(self, units: float) -> int:
        """A length in pixels, at least one."""
        return max(1, round(units * self.scale))

    def fill(self, box: Box, colour: Colour) -> None:
        box = self.box(box)
        self.pixels[max(box.y, 0) : box.bottom, max(box.x, 0) : box.right] = colour

    def panel(self, box: Box) -> None:
        """A quiet rounded plate to draw on."""
        pygame.draw.rect(self.surface, PANEL, self.box(box), border_radius=self.length(8))
        pygame.draw.rect(self.surface, EDGE, self.box(box), self.length(1), border_radius=self.length(8))

    def picture(self, picture: np.ndarray, box: Box, frame: Colour | None = None) -> None:
        """A square picture scaled to fill `box`, with a `frame` round it."""
        box = self.box(box)
        mode = cv2.INTER_AREA if picture.shape[0] > box.h else cv2.INTER_LINEAR
        scaled = picture if picture.shape[:2] == (box.h, box.w) else cv2.resize(picture, box[2:], interpolation=mode)
        self.pixels[box.y : box.bottom, box.x : box.right] = scaled
        if frame:
            edge = self.length(2)
            outer = Box(box.x - edge, box.y - edge, box.w + 2 * edge, box.h + 2 * edge)
            pygame.draw.rect(self.surface, frame, outer, edge, border_radius=self.length(3))

    def lines(
        self, paths: np.ndarray, colour: Colour, width: int = 1, alpha: float = 1.0, clip: Box | None = None
    ) -> None:
        """Anti-aliased lines through points `(N, P, 2)`, seen through by `1 - alpha`, cut off at `clip`."""
        with self._layer(alpha, clip) as (layer, corner):
            points = list(_fixed(paths * self.scale - corner))
            cv2.polylines(layer, points, False, colour, self.length(width), cv2.LINE_AA, BITS)

    def area(self, outline: np.ndarray, colour: Colour, alpha: float, clip: Box) -> None:
        """A filled polygon `(P, 2)`, seen through by `1 - alpha`."""
        with self._layer(alpha, clip) as (layer, corner):
            cv2.fillPoly(layer, [_fixed(outline * self.scale - corner)], colour, cv2.LINE_AA, BITS)

    @contextlib.contextmanager
    def _layer(self, alpha: float, clip: Box | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pixels to draw on that are mixed with those below afterwards, and where their corner is."""
        box = self.box(clip or Box(0, 0, *self.size))
        below = self.pixels[box.y : box.bottom, box.x : box.right]
        layer = below if alpha == 1 else below.copy()
        yield layer, np.array(box[:2])
        if alpha != 1:
            cv2.addWeighted(layer, alpha, below, 1 - alpha, 0, dst=below)

    def dot(self, x: float, y: float, radius: float, colour: Colour, width: int = -1) -> None:
        """A disc, or with a `width` a ring."""
        centre = _fixed(np.array([x, y]) * self.scale).tolist()
        thickness = width if width < 0 else self.length(width)
        cv2.circle(self.pixels, centre, round(radius * self.scale * 2**BITS), colour, thickness, cv2.LINE_AA, BITS)

    def text(
        self, words: str, x: float, y: float, size: int = BODY, colour: Colour = INK, align: Align = "left"
    ) -> float:
        """One line of text whose top is at `y`; returns its width."""
        rendered = font(self.length(size)).render(words, True, colour)
        width = rendered.get_width() / self.scale
        left = {"left": x, "right": x - width, "centre": x - width / 2}[align]
        self.surface.blit(rendered, (round(left * self.scale), round(y * self.scale)))
        return width

    def key(self, entries: Sequence[tuple[str, Colour]], right: float, y: float) -> None:
        """Names of lines with their colours, the last of them ending at `right`."""
        for name, colour in reversed(entries):
            right -= self.text(name, right, y, SMALL, MUTED, "right") + 6
            self.lines(np.array([[[right - 14, y + 8], [right, y + 8]]]), colour, 2)
            right -= 26

    def chip(self, words: str, right: float, y: float, colour: Colour) -> float:
        """A word on a rounded plate that ends at `right`; returns how much room it took."""
        width = font(self.length(SMALL)).size(words)[0] / self.scale + 16
        plate = [round(length * self.scale) for length in (right - width, y, width, 20)]
        pygame.draw.rect(self.surface, colour, plate, border_radius=self.length(10))
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
