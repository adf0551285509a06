"""The parts of a frame: pictures with what is drawn over them, distances over time, and the facts in words."""

import math

import numpy as np
from numpy.typing import ArrayLike

from agent.planning.base import Plan
from agent.viewer import overlay
from agent.viewer.canvas import (
    ALARM,
    BODY,
    EDGE,
    FAINT,
    GOAL,
    IMAGINED,
    INK,
    LARGE,
    MUTED,
    REAL,
    SMALL,
    Box,
    Canvas,
    Colour,
    wrap,
)
from agent.viewer.hud_state import HudState
from envs import Task

FAN, ELITES = 60, 10
"""Candidates and elites that are drawn."""


def pane(canvas: Canvas, box: Box, title: str, note: str, colour: Colour, picture: np.ndarray | None) -> None:
    """A picture with its title above; without a picture an empty plate."""
    width = canvas.text(title, box.x, box.y - 23, LARGE, colour)
    canvas.text(note, box.x + width + 10, box.y - 19, SMALL, MUTED)
    if picture is None:
        canvas.panel(box)
    else:
        canvas.picture(picture, box, colour)


def fan(canvas: Canvas, box: Box, task: Task, state: np.ndarray, plan: Plan, begun: int) -> None:
    """Where the candidates, the elites and the plan lead from `state`; `begun` actions of it have been carried out."""

    def lines(actions: np.ndarray) -> np.ndarray | None:
        steps = actions.reshape(len(actions), -1, len(task.action_names))[:, begun:]
        shares = overlay.paths(task, state, steps)
        return None if shares is None else shares * box.w + np.array(box[:2])

    spread = np.linspace(0, len(plan.candidates) - 1, min(FAN, len(plan.candidates))).round().astype(int)
    candidates, elites, chosen = lines(plan.candidates[spread]), lines(plan.elites[:ELITES]), lines(plan.actions[None])
    if candidates is None or elites is None or chosen is None:
        return
    canvas.lines(candidates, (126, 110, 196), 1, 0.35, box)
    canvas.lines(elites, (238, 120, 40), 1, 0.8, box)
    canvas.lines(chosen, (214, 60, 50), 2, 1.0, box)
    if chosen.shape[1] > 1:
        x, y = np.clip(chosen[0, -1], (box.x + 5, box.y + 5), (box.right - 5, box.bottom - 5))
        canvas.dot(x, y, 4, (214, 60, 50))


def distances(canvas: Canvas, box: Box, hud: HudState, unit: str) -> None:
    """The distance to the goal over the steps of this episode, with what each plan predicted of it."""
    record = hud.record
    assert record is not None
    latent = record.thought.latent_distance is not None
    canvas.panel(box)
    canvas.text("latent distance" if latent else "distance to the goal", box.x + 14, box.y + 10, BODY, INK)
    canvas.text("" if latent else f"in {unit}", box.right - 14, box.y + 11, SMALL, FAINT, "right")
    if latent:
        canvas.key([("measured", REAL), ("predicted", IMAGINED)], box.right - 14, box.y + 11)
    plot = box.inset(46, 40, 16, 34)
    values = [mark.distance for mark in hud.marks] + [d for p in hud.predictions for d in p.distances]
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

    measured = place([mark.step for mark in hud.marks], [mark.distance for mark in hud.marks])
    for mark, x in zip(hud.marks, measured[:, 0], strict=True):
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
    canvas.lines(measured[None], REAL, 2, 1.0, clip)
    x, y = measured[-1]
    canvas.dot(x, y, 4, GOAL if record.success else REAL)


def facts(canvas: Canvas, box: Box, rows: list[tuple[str, str, Colour]], rule: str) -> None:
    """What there is to know in words: a label and a value a row, and the rule of success below."""
    canvas.panel(box)
    y = box.y + 14
    for label, value, colour in rows:
        canvas.text(label, box.x + 14, y + 1, SMALL, MUTED)
        canvas.text(value, box.x + 96, y, BODY, colour)
        y += 27
    lines = wrap(f"Reached: {rule}.", box.w - 28, SMALL)
    y = box.bottom - 10 - 16 * len(lines)
    canvas.fill(Box(box.x + 14, y - 8, box.w - 28, 1), EDGE)
    for number, line in enumerate(lines):
        canvas.text(line, box.x + 14, y + 16 * number, SMALL, MUTED)


def help_card(canvas: Canvas, keys: list[tuple[str, str]]) -> None:
    """All keys on a plate in the middle."""
    height, width = canvas.pixels.shape[:2]
    canvas.pixels[:] = canvas.pixels // 3
    box = Box(width // 2 - 230, height // 2 - 14 * len(keys) - 34, 460, 28 * len(keys) + 68)
    canvas.panel(box)
    canvas.text("Keys and mouse", box.x + 28, box.y + 20, LARGE, INK)
    for number, (key, meaning) in enumerate(keys):
        canvas.text(key, box.x + 130, box.y + 54 + 28 * number, BODY, IMAGINED, "right")
        canvas.text(meaning, box.x + 150, box.y + 54 + 28 * number, BODY, INK)


def nice_ceiling(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 5, 6, 8 or 10 times a power of ten, for an axis."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)
