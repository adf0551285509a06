"""How proposals are learned: every later frame of an episode was once the goal of the actions before it."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from envs.dataset.reader import Dataset
from envs.errors import BadInput
from models import Proposals
from models.proposal_network import Mixture
from training.data.windows import Windows, rows_of

DISTANCES = (1, 2, 3, 5, 10, 20)
"""Blocks between a frame and its goal at which proposals are measured."""


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
        """Up to 2048 frames evenly spaced over all that have a goal so many blocks away, or None."""
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


def make_network(latents: Tensor, mean: Tensor, std: Tensor, **settings: float) -> Proposals:
    """A fresh network for latents like these `(N, D)` and action blocks of this mean and spread `(k*A,)`."""
    network = Proposals(latents.shape[1], len(mean), **settings)  # type: ignore[arg-type]
    network.latent_mean.copy_(latents.mean(0))
    network.latent_std.copy_(latents.std(0).clamp(min=1e-4))
    network.action_mean.copy_(mean)
    network.action_std.copy_(std)
    return network


def sample_rows(data: Dataset, episodes: np.ndarray, count: int = 50_000) -> np.ndarray:
    """At most `count` rows of `episodes`, evenly spaced: enough to know how latents spread."""
    rows = rows_of(data, episodes)
    return rows[:: max(1, len(rows) // count)]


def loss(network: Proposals, samples: Samples) -> Tensor:
    """Mean negative log-likelihood, in nats for each number of a block."""
    return nll(network(*samples[:3]), z_scored(network, samples)).mean() / network.action_size


def nll(mixture: Mixture, blocks: Tensor) -> Tensor:
    """Negative log-likelihood `(B,)` of z-scored blocks `(B, k*A)`."""
    off = (blocks[:, None] - mixture.means) / mixture.spreads
    each = -0.5 * (off**2 + math.log(2 * math.pi)) - mixture.spreads.log()
    return -torch.logsumexp(mixture.weights.log_softmax(1) + each.sum(2), dim=1)


@torch.no_grad()
def measure(network: Proposals, hindsight: Hindsight) -> dict[str, float]:
    """By blocks to the goal: the likelihood, and the squared error of the likeliest mean (1: no better than a mean)."""
    training = network.training
    network.eval()
    device = network.latent_mean.device
    measured = {}
    for blocks in DISTANCES:
        samples = hindsight.apart(blocks)
        if samples is None:
            continue
        samples = Samples(*(part.to(device) for part in samples))
        mixture, wanted = network(*samples[:3]), z_scored(network, samples)
        means = mixture.means[torch.arange(len(wanted)), mixture.weights.argmax(1)]
        measured[f"error_{blocks}"] = float((means - wanted).square().mean())
        measured[f"nll_{blocks}"] = float(nll(mixture, wanted).mean() / network.action_size)
    network.train(training)
    return measured


def z_scored(network: Proposals, samples: Samples) -> Tensor:
    """Blocks `(B, k*A)` as the network sees them."""
    return (samples.actions - network.action_mean) / network.action_std
