"""Where a plan expects to arrive, and the way there."""

import math
from collections.abc import Callable

import numpy as np

from agent.planning.base import Plan
from agent.viewer.canvas import BACK, FAINT, IMAGINED, INK, LARGE, MUTED, SMALL, Box, Canvas
from agent.viewer.hud_state import arrival
from agent.viewer.latent_images import Pictured
from agent.viewer.panels.panes import pane

STRIP = 5
"""Blocks on the way that are shown."""


def imagined(
    canvas: Canvas,
    box: Box,
    plan: Plan,
    block: int,
    goal: np.ndarray,
    shown: Pictured,
    note: str,
    picture: Callable[[np.ndarray, int], np.ndarray],
) -> None:
    """The block at which the plan wants to arrive large, the way there as a strip of blocks beside it.

    `block` is how many steps one block takes, and `picture` draws a state in a size.
    """
    small = (box.h - 4 * (STRIP - 1)) // STRIP
    large = box.w - small - 8
    there, last = arrival(plan), len(shown.states) - 1
    numbers = np.unique(np.linspace(0, last, min(STRIP, last + 1)).round().astype(int))
    if there not in numbers:
        numbers[np.abs(numbers - there).argmin()] = there
    pane(canvas, Box(box.x, box.y, large, large), "imagined", note, IMAGINED, picture(shown.states[there], large))
    for row, number in enumerate(numbers):
        place = Box(box.right - small, box.y + row * (small + 4), small, small)
        canvas.picture(picture(shown.states[number], small), place, IMAGINED if number == there else None)
        canvas.fill(Box(place.right - 28, place.bottom - 15, 28, 15), BACK)
        canvas.text(f"+{block * (number + 1)}", place.right - 3, place.bottom - 14, SMALL, IMAGINED, "right")
    y = box.y + large + 9
    canvas.text(expectation(plan, block), box.x, y, LARGE, INK)
    canvas.text("latent distance to the goal, as predicted", box.x, y + 23, SMALL, MUTED)
    gap = float(shown.gaps[there])
    whose = "the goal's own picture" if np.array_equal(shown.states[there], goal) else "the picture"
    words = "the picture is of the predicted latent itself" if gap == 0 else f"{whose}, {gap:.2g} from that latent"
    far = gap > math.sqrt(plan.distances[there])
    canvas.text(words, box.x, y + 40, SMALL, IMAGINED if far else FAINT)


def expectation(plan: Plan, block: int) -> str:
    """How near the goal the plan gets where it wants to arrive, Euclidean, and after how many steps."""
    there = arrival(plan)
    how = "nearest" if plan.distances[there] == plan.distances.min() else "ends at"
    return f"{how} {math.sqrt(plan.distances[there]):.3g} at +{block * (there + 1)}"
