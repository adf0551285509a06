"""Frames with later frames of their episode as goals: each was once the goal of the actions that led to it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from envs.dataset.reader import Dataset
from envs.errors import BadInput
from training.data.windows import Windows, rows_of


class Samples(NamedTuple):
    """What the network is given, and the blocks that it should propose."""

    latents: Tensor
    """`(B, D)`"""
    goals: Tensor
    """`(B, D)`"""
    blocks_left: Tensor
    """`(B, 1)`"""
    actions: Tensor
    """Blocks `(B, k*A)` in the task's units."""


@dataclass(frozen=True)
class Hindsight:
    """All frames of some episodes that a whole action block leaves, with later frames of their episode as goals."""

    windows: Windows
    """Of two frames: where a block starts and where it ends."""
    latents: Tensor
    """Of every row of the dataset `(R, D)`."""
    farthest: int
    """Rows between a frame and its goal at most."""

    @classmethod
    def of(cls, data: Dataset, episodes: np.ndarray, block: int, latents: Tensor, reach: int) -> "Hindsight":
        """The frames of `episodes`, with goals up to `reach` control steps later and blocks of `block` steps."""
        if reach < block:
            raise BadInput(f"--reach must be at least {block}, the control steps of one block")
        windows = Windows.of(data, episodes, 2, block, np.zeros(data.action_dim))
        return cls(windows, latents, reach // data.frame_skip)

    def __len__(self) -> int:
        return len(self.windows)

    def draw(self, index: np.ndarray, rng: np.random.Generator) -> Samples:
        """The frames `index` `(B,)`, each with a random goal, at least a block away and often near.

        The square puts half of the goals into the first quarter of what the episode and the reach allow.
        """
        nearest = self.windows.stride
        farthest = np.minimum(self.farthest, self.windows.end[index] - self.windows.start[index])
        beyond = (farthest + 1 - nearest) * rng.random(len(index)) ** 2
        return self.samples(index, nearest + beyond.astype(int))

    def apart(self, blocks: int) -> Samples | None:
        """Up to 2048 frames, evenly spaced over all that have a goal `blocks` away; None if none has."""
        rows = blocks * self.windows.stride
        fit = np.flatnonzero(self.windows.start + rows <= self.windows.end)
        if not len(fit) or rows > self.farthest:
            return None
        index = fit[np.unique(np.linspace(0, len(fit) - 1, 2048).astype(int))]
        return self.samples(index, np.full(len(index), rows))

    def samples(self, index: np.ndarray, rows: np.ndarray) -> Samples:
        """The frames `index` `(B,)` with goals some `rows` `(B,)` later."""
        start = self.windows.start[index]
        left = torch.from_numpy(rows[:, None] / self.windows.stride).float()
        actions = torch.from_numpy(self.windows.actions(index)[:, 0])
        return Samples(self.latents[start], self.latents[start + rows], left, actions)


def aimed(data: Dataset, episodes: np.ndarray) -> np.ndarray:
    """Those of `episodes` that do not stray, or all of them if all do: aimless actions are nothing to propose."""
    chosen = episodes[~data.strays[episodes]]
    return chosen if len(chosen) else episodes


def sample_rows(data: Dataset, episodes: np.ndarray, count: int = 50_000) -> np.ndarray:
    """At most `count` rows of `episodes`, evenly spaced: enough to know how latents spread."""
    rows = rows_of(data, episodes)
    return rows[:: max(1, len(rows) // count)]
