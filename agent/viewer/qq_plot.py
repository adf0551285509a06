"""The quantile-quantile plot of latents: how near random projections of them are to a Gaussian, and the radial tail.

Standard normal latents lie on the diagonal in every direction, and a tenth of them lie outside the sphere whose squared
radius is the 90 % quantile of chi-squared with D degrees of freedom.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from agent.viewer.canvas import BODY, EDGE, FAINT, IMAGINED, INK, MUTED, PANEL, REAL, SMALL, Box, Canvas

DIRECTIONS, LEVELS, SPAN = 24, 41, 3.2
TAIL = 0.1
FEWEST = 8


@dataclass(frozen=True)
class QQ:
    """Quantiles of projected latents against those of a standard normal."""

    gaussian: np.ndarray
    """`(L,)`"""
    projected: np.ndarray
    """`(P, L)`, one row for each direction."""
    tail_rate: float
    """P(|z|^2 > q90 of chi-squared with D degrees): 0.1 for a standard normal."""
    count: int

    @classmethod
    def of(cls, latents: np.ndarray, standardise: bool = False) -> "QQ":
        """Of latents `(M, D)`, M >= 1; `standardise` first shifts and scales each number of them."""
        count, size = latents.shape
        if standardise:
            latents = (latents - latents.mean(axis=0)) / np.maximum(latents.std(axis=0), 1e-9)
        levels = (np.arange(min(count, LEVELS)) + 0.5) / min(count, LEVELS)
        gaussian = np.array([NormalDist().inv_cdf(level) for level in levels])
        ordered = np.sort(latents @ directions(size).T, axis=0)
        ranks = np.clip(levels * count - 0.5, 0, count - 1)
        projected = np.stack([np.interp(ranks, np.arange(count), column) for column in ordered.T])
        tail_rate = float((np.square(latents).sum(axis=1) > chi_squared_quantile(1 - TAIL, size)).mean())
        return cls(gaussian, projected, tail_rate, count)


def directions(size: int, count: int = DIRECTIONS) -> np.ndarray:
    """Random unit vectors `(count, size)`, always the same, so that the plot moves only when the latents do."""
    vectors = np.random.default_rng(0).standard_normal((count, size))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def chi_squared_quantile(level: float, degrees: int) -> float:
    """By Wilson and Hilferty's cube root, within 1 % of the truth from 2 degrees on."""
    part = 2 / (9 * degrees)
    return degrees * (1 - part + NormalDist().inv_cdf(level) * part**0.5) ** 3


def draw(canvas: Canvas, box: Box, recent: QQ | None, stored: QQ | None = None, note: str = "") -> None:
    """The plot in `box`: a fan of directions, their mean as dots, and the Gaussian line; `stored` frames for scale."""
    canvas.panel(box)
    canvas.text("QQ of latents", box.x + 14, box.y + 10, BODY, INK)
    names = [("recent", REAL), ("stored", MUTED), ("Gaussian", FAINT)]
    canvas.key([names[0], names[2]] if stored is None else names, box.right - 14, box.y + 11)
    side = min(box.w - 60, box.h - 74)
    plot = Box(box.x + (box.w - side) // 2, box.y + 34, side, side)
    _axes(canvas, plot)
    if recent is None:
        canvas.text(note or "waiting for latents", box.x + box.w / 2, box.bottom - 25, SMALL, FAINT, "centre")
        return
    if stored is not None:
        canvas.lines(_place(plot, stored.gaussian, stored.projected.mean(axis=0))[None], MUTED, 2, 0.9, plot)
    low, high = recent.projected.min(axis=0), recent.projected.max(axis=0)
    outline = np.concatenate([_place(plot, recent.gaussian, low), _place(plot, recent.gaussian, high)[::-1]])
    canvas.area(outline, REAL, 0.14, plot)
    canvas.lines(
        _place(plot, np.broadcast_to(recent.gaussian, recent.projected.shape), recent.projected), REAL, 1, 0.3, plot
    )
    points = _place(plot, recent.gaussian, recent.projected.mean(axis=0))
    for (x, y), level in zip(points.tolist(), recent.gaussian, strict=True):
        if plot.contains(x, y):
            blend = min(abs(level) / 2.2, 1.0)
            colour = tuple(round((1 - blend) * a + blend * b) for a, b in zip(REAL, IMAGINED, strict=True))
            canvas.dot(x, y, 4.2, PANEL)
            canvas.dot(x, y, 3.0, colour)
    _tail(canvas, box, recent, note)


def _axes(canvas: Canvas, plot: Box) -> None:
    ticks = np.arange(-3, 4)
    grid = [
        np.array([[[x, plot.y], [x, plot.bottom]], [[plot.x, y], [plot.right, y]]])
        for x, y in _place(plot, ticks, ticks)
    ]
    canvas.lines(np.concatenate(grid), EDGE, 1, 0.45, plot)
    canvas.lines(grid[3], EDGE, 1, 1.0, plot)
    for tick, (x, y) in zip(ticks, _place(plot, ticks, ticks), strict=True):
        if tick % 2 == 0:
            canvas.text(f"{tick}", x, plot.bottom + 2, SMALL - 2, FAINT, "centre")
            canvas.text(f"{tick}", plot.x - 5, y - 6, SMALL - 2, FAINT, "right")
    ends = np.linspace(-SPAN, SPAN, 30)
    dashes = np.stack([_place(plot, ends[i : i + 2], ends[i : i + 2]) for i in range(0, 30, 2)])
    canvas.lines(dashes, FAINT, 1, 1.0, plot)


def _tail(canvas: Canvas, box: Box, recent: QQ, note: str) -> None:
    """The tail rate under the plot, warmer the further it is from a Gaussian's."""
    colour = INK if 0.5 * TAIL <= recent.tail_rate <= 2 * TAIL else IMAGINED
    words = f"tail {recent.tail_rate:.2f}"
    width = canvas.text(words, box.x + 14, box.bottom - 27, BODY, colour)
    canvas.text(f"Gaussian {TAIL:.2f}", box.x + 20 + width, box.bottom - 25, SMALL, FAINT)
    canvas.text(note or f"last {recent.count}", box.right - 14, box.bottom - 25, SMALL, FAINT, "right")


def _place(plot: Box, gaussian: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Pixels `(..., 2)` of quantiles `(...)` and `(...)`."""
    x = plot.x + (gaussian / SPAN + 1) / 2 * plot.w
    y = plot.bottom - (value / SPAN + 1) / 2 * plot.h
    return np.stack([x, y], axis=-1)
