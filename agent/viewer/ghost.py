"""The outline of the goal, to be drawn over another picture: what a picture shows apart from the task's background."""

from collections.abc import Callable

import cv2
import numpy as np

from envs import Task

PICTURES = 7
"""Random states whose pictures, together, show the background."""
DIFFERENT = 40
"""Grey levels by which an object differs from the background."""
SMALLEST = 20.0
"""Pixels of an object; less is a speck."""


class Ghost:
    """Finds outlines in pictures that `picture` draws of states."""

    def __init__(self, task: Task, picture: Callable[[np.ndarray], np.ndarray]):
        self._task = task
        self._picture = picture
        self._background: np.ndarray | None = None
        self._last: tuple[bytes, list[np.ndarray]] | None = None

    def outlines(self, state: np.ndarray) -> list[np.ndarray]:
        """Closed outlines `(P, 2)` of the objects in the picture of `state`, as shares of it."""
        if self._last is None or self._last[0] != state.tobytes():
            self._last = state.tobytes(), self._find(self._picture(state))
        return self._last[1]

    def _find(self, picture: np.ndarray) -> list[np.ndarray]:
        if self._background is None:
            starts = [self._task.start(np.random.default_rng(number)) for number in range(PICTURES)]
            self._background = np.median([self._picture(start) for start in starts], axis=0)
        objects = np.abs(picture - self._background).max(axis=-1) > DIFFERENT
        found, _ = cv2.findContours(objects.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        outlines = [outline[:, 0] for outline in found if cv2.contourArea(outline) >= SMALLEST]
        return [(np.concatenate([outline, outline[:1]]) + 0.5) / len(picture) for outline in outlines]
