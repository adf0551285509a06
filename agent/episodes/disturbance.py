"""Seeded pushes: now and then the goal object is somewhere else, and the agent has to cope."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from envs import BadInput, Task

PUSH_SPACE, BOX_SPACE = 0x9054, 0x9055  # first words of the seeds
TRIES, BOX_STARTS = 16, 64

Push = Callable[[Task, np.ndarray, int, int, int], np.ndarray | None]
"""Task, state `(S,)`, seed, pair and step to a push `(M,)` over the task's `movable`, if there is one."""


@dataclass(frozen=True)
class Disturbance:
    """Pushes by `strength` times the task's `moved_by`, in a random direction, about once in `every` steps."""

    strength: float = 2.0
    every: int = 20

    def __post_init__(self) -> None:
        if not self.strength > 0 or self.every < 1:
            raise BadInput(f"pushes need a strength above 0, got {self.strength}")

    def __call__(self, task: Task, state: np.ndarray, seed: int, pair: int, step: int) -> np.ndarray | None:
        """The push `(M,)` over the task's `movable` at this step, if there is one; depends on the arguments only."""
        rng = np.random.default_rng([PUSH_SPACE, seed, pair, step])
        if rng.random() >= 1 / self.every:
            return None
        low, high = _box(task)
        here = state[list(task.movable)]
        low, high = np.minimum(low, here), np.maximum(high, here)
        for _ in range(TRIES):
            push = np.clip(here + self._draw(rng, low, high, task), low, high) - here
            if _holds(task, state, push):
                return push
        return None

    def _draw(self, rng: np.random.Generator, low: np.ndarray, high: np.ndarray, task: Task) -> np.ndarray:
        """A random direction among the numbers that vary at all (a cube at rest never starts in the air)."""
        direction = rng.standard_normal(len(low)) * (high > low)
        return self.strength * task.moved_by * direction / max(float(np.linalg.norm(direction)), 1e-9)


def _holds(task: Task, state: np.ndarray, push: np.ndarray) -> bool:
    """Whether physics leaves the goal object where it was pushed: not in a wall, and not in the agent."""
    pushed = state.copy()
    pushed[list(task.movable)] += push
    rest = np.zeros(len(task.action_names))
    drift = (task.advance(pushed, rest) - pushed) - (task.advance(state, rest) - state)
    return float(np.linalg.norm(drift[list(task.movable)])) < task.moved_by


def _box(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Where the goal object may be: the extent of the task's start states over `movable`."""
    if task not in _boxes:
        rng = np.random.default_rng(BOX_SPACE)
        places = np.stack([task.start(rng) for _ in range(BOX_STARTS)])[:, list(task.movable)]
        _boxes[task] = places.min(axis=0), places.max(axis=0)
    return _boxes[task]


_boxes: weakref.WeakKeyDictionary[Task, tuple[np.ndarray, np.ndarray]] = weakref.WeakKeyDictionary()  # a cache
