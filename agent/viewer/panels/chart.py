"""The distance to the goal over the steps of an episode."""

import math

import numpy as np
from numpy.typing import ArrayLike

from agent.viewer.canvas import ALARM, BODY, EDGE, FAINT, GOAL, IMAGINED, INK, REAL, SMALL, Box, Canvas
from agent.viewer.hud_state import HudState


def distances(canvas: Canvas, box: Box, hud: HudState, unit: str) -> None:
    """The distance to the goal over the steps of this episode, with what each plan predicted of it."""
    record = hud.record
    assert record is not None
    latent = record.thought.goal_latent is not None
    canvas.panel(box)
    title = "latent distance" if latent else "distance to the goal"
    width = canvas.text(title, box.x + 14, box.y + 10, BODY, INK)
    canvas.text("Euclidean" if latent else f"in {unit}", box.x + 22 + width, box.y + 12, SMALL, FAINT)
    if latent:
        canvas.key([("measured", REAL), ("predicted", IMAGINED)], box.right - 14, box.y + 11)
    plot = box.inset(46, 40, 16, 34)
    seen = [(mark.step, mark.distance) for mark in hud.marks if mark.distance is not None]
    values = [distance for _, distance in seen] + [d for p in hud.predictions for d in p.distances]
    top = nice_ceiling(max(values, default=1.0))

    def place(steps: ArrayLike, heights: ArrayLike) -> np.ndarray:
        x = plot.x + np.asarray(steps, float) / record.limit * plot.w
        return np.stack([x, plot.bottom - np.asarray(heights, float) / top * plot.h], axis=-1)

    for share in (0, 0.5, 1):
        (y,) = place([0], [share * top])[:, 1]
        canvas.lines(np.array([[[plot.x, y], [plot.right, y]]]), EDGE, 1)
        canvas.text(f"{share * top:g}", plot.x - 8, y - 7, SMALL - 1, FAINT, "right")
    for step in (0, record.limit // 2, record.limit):
        canvas.text(f"{step}", place([step], [0])[0, 0], plot.bottom + 6, SMALL - 1, FAINT, "centre")
    canvas.text("step", plot.x + plot.w / 4, plot.bottom + 6, SMALL - 1, FAINT, "centre")

    for mark in hud.marks:
        x = place(mark.step, 0)[0]
        if mark.success:
            width = max(2, math.ceil(plot.w / record.limit))
            canvas.fill(Box(round(x - width / 2), plot.bottom + 1, width, 3), GOAL)
        if mark.pushed:
            canvas.text("push", x, plot.y - 12, SMALL - 1, ALARM, "centre")
            canvas.lines(np.array([[[x, plot.y], [x, plot.bottom]]]), ALARM, 1, 0.6)
    clip = Box(plot.x - 4, plot.y - 4, plot.w + 14, plot.h + 8)
    for number, prediction in enumerate(hud.predictions):
        newest = number == len(hud.predictions) - 1
        points = place(prediction.steps, prediction.distances)
        canvas.lines(points[None], IMAGINED, 1, 1.0 if newest else 0.25, clip)
        for x, y in points[1:] if newest else []:
            if clip.contains(x, y):
                canvas.dot(x, y, 2.5, IMAGINED)
    if seen:
        measured = place(*zip(*seen, strict=True))
        canvas.lines(measured[None], REAL, 2, 1.0, clip)
        canvas.dot(measured[-1, 0], measured[-1, 1], 4, GOAL if record.success else REAL)


def nice_ceiling(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 5, 6, 8 or 10 times a power of ten, for an axis."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)
