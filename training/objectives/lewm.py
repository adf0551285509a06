"""LeWM: the Epps-Pulley distance between characteristic functions (SIGReg)."""

import math

import torch
from torch import Tensor

from training.objectives.base import Objective, directions, project

KNOTS = 17
T_MAX = 3.0
FORCE = math.sqrt(math.pi) / (2 * 1.5**1.5)
"""Near a standard normal the statistic is N * FORCE * ((s-1)^2 + mu^2): the integral of t^2 exp(-3t^2/2), or of t^4
times a half of it, which is the same 0.4824."""


def statistic(x: Tensor) -> Tensor:
    """The Epps-Pulley statistic of each slice, `(…)` for samples `(N, …)`, by LeWM's 17-knot trapezoid on [0, 3].

    The weight is exp(-t^2/2), doubling counts the negative half axis, and the sum is multiplied by N (eq:EPtest).
    """
    step = T_MAX / (KNOTS - 1)
    knots = torch.linspace(0, T_MAX, KNOTS, dtype=x.dtype, device=x.device)
    normal = torch.exp(-knots.square() / 2)
    weights = torch.full_like(knots, 2 * step)
    weights[[0, -1]] = step
    total = torch.zeros_like(x[0])
    for knot, target, weight in zip(knots, normal, weights * normal, strict=True):
        angles = knot * x
        total = total + weight * ((angles.cos().mean(0) - target).square() + angles.sin().mean(0).square())
    return len(x) * total


def closed_form(x: Tensor) -> Tensor:
    """The same statistic with the integral over the whole axis done exactly, as an MMD (eq:MMD); O(N^2) memory."""
    count = len(x)
    pairs = torch.exp(-(x[:, None] - x[None]).square() / 2).sum((0, 1))
    centre = torch.exp(-x.square() / 4).sum(0)
    return math.sqrt(2 * math.pi) / count * pairs - 2 * math.sqrt(math.pi) * centre + math.sqrt(2 * math.pi / 3) * count


class LeWM(Objective):
    """Epps-Pulley on random directions, per time step, with LeWM's weight for a batch of 128."""

    unit_force = FORCE
    grows_with_batch = True

    def __init__(self, latent: int = 192, action_size: int = 10, weight: float = 0.09, directions: int = 1024):
        super().__init__(latent, action_size)
        self.weights = {"ep": weight}
        self.directions = directions

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        units = directions(self.directions, latents.shape[-1], generator, latents)
        return {"ep": statistic(project(latents, units)).mean()}
