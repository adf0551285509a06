"""What every objective is: prediction error plus named, weighted terms on the latents of one batch."""

from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Loss(NamedTuple):
    """The number to minimise and what it is made of: each term before its weight, and its weight."""

    total: Tensor
    terms: dict[str, Tensor]
    weights: dict[str, float]

    def plus(self, name: str, term: Tensor, weight: float) -> "Loss":
        """The loss with one more term."""
        return Loss(self.total + weight * term, {**self.terms, name: term}, {**self.weights, name: weight})


class Objective(nn.Module):
    """Prediction MSE plus `weights[name] * terms[name]`; both sides of the prediction get gradient.

    Latents are `(T, B, D)`: T frames of B windows, over all ranks. A subclass sets `self.weights` and writes `terms`;
    everything it computes is float32, also when the network runs in bfloat16. What must survive a restart is a buffer.
    """

    frames: int = 4
    """Frames of a training window; the predictor sees `frames - 1` of them at most."""
    lr: ClassVar[float] = 5e-5
    """The published learning rate, for the published network and batch."""
    published: ClassVar[dict[str, dict[str, Any]]] = {}
    """Settings published for single tasks."""
    weights: dict[str, float]
    unit_force: ClassVar[float | None] = None
    """What a weight of 1 pulls with on a batch of one, near a standard normal: the factor of (s-1)^2 + mu^2 for a
    projection of standard deviation s and mean mu; None where the regulariser has no such limit. Statistics that are
    multiplied by the batch size say so by `grows_with_batch`."""
    grows_with_batch: ClassVar[bool] = False
    settings: dict[str, Any]
    """What it was made with, defaults and all."""

    def __init__(self, latent: int = 192, action_size: int = 10):
        super().__init__()
        self.latent = latent
        self.action_size = action_size
        self.weights = {}

    @classmethod
    def weight_of(cls, strength: float, batch: int) -> float:
        """The weight with which this objective pulls as strongly as mean-QQ with weight `strength`, at this batch."""
        if cls.unit_force is None:
            raise ValueError("has no strength to compare with others: give its own weights")
        return strength / (cls.unit_force * (batch if cls.grows_with_batch else 1))

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        """Named scalars of latents `(T, B, D)` and z-scored action blocks `(T, B, k*A)`."""
        return {}

    def forward(self, latents: Tensor, errors: Tensor, actions: Tensor, generator: torch.Generator) -> Loss:
        """The loss of latents `(T, B, D)`, prediction errors (any shape) and z-scored action blocks `(T, B, k*A)`."""
        with torch.autocast(latents.device.type, enabled=False):
            terms = {"prediction": errors.float().square().mean()}
            terms |= self.terms(latents.float(), actions.float(), generator)
        weights = {"prediction": 1.0, **self.weights}
        total = torch.stack([weights[name] * value for name, value in terms.items()]).sum()
        return Loss(total, terms, weights)


class NoRegulariser(Objective):
    """Prediction error alone: the control that shows the collapse the others prevent."""


def directions(count: int, latent: int, generator: torch.Generator, like: Tensor) -> Tensor:
    """Random unit vectors `(count, latent)`, drawn on the CPU so that every device and rank gets the same."""
    return F.normalize(torch.randn(count, latent, generator=generator), dim=1).to(like)


def project(latents: Tensor, units: Tensor) -> Tensor:
    """Samples `(B, T, S)` of latents `(T, B, D)` along directions `(S, D)`, contiguous in B for the sort."""
    return (units @ latents.transpose(1, 2)).movedim(-1, 0)
