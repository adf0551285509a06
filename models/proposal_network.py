"""Proposals: which actions lead from one latent to another, as a mixture of Gaussians over the next action block."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

NARROWEST, WIDEST = 0.02, 2.0
CLOCK = 64


class Mixture(NamedTuple):
    """M Gaussians over action blocks for each of B latents."""

    weights: Tensor
    """`(B, M)`: logarithms up to a constant from `forward`, shares that add up to 1 from `propose`."""
    means: Tensor
    """`(B, M, k*A)`"""
    spreads: Tensor
    """Standard deviations `(B, M, k*A)`."""


class Proposals(nn.Module):
    """A latent, a goal's latent and the blocks left until it is reached come in; the next action block goes out.

    An MLP of `depth` layers, with every normaliser inside. With one component it is a plain regression: its spread is
    learned but does not depend on the input.
    """

    latent_mean: Tensor
    latent_std: Tensor
    action_mean: Tensor
    action_std: Tensor

    def __init__(
        self,
        latent: int,
        action_size: int,
        components: int = 1,
        width: int = 512,
        depth: int = 3,
        dropout: float = 0.0,
    ):
        """`action_size` is that of a block (k*A)."""
        super().__init__()
        self.latent = latent
        self.action_size = action_size
        self.components = components
        self.clock = nn.Sequential(nn.Linear(1, CLOCK), nn.GELU(), nn.Linear(CLOCK, CLOCK))
        layers: list[nn.Module] = []
        for size in [2 * latent + CLOCK] + [width] * (depth - 1):
            layers += [nn.Linear(size, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(dropout)]
        self.body = nn.Sequential(*layers)
        self.weights = nn.Linear(width, components)
        self.means = nn.Linear(width, components * action_size)
        self.spreads = nn.Linear(width, components * action_size)
        if components == 1:
            self.spreads.weight.requires_grad_(False).zero_()
        else:
            nn.init.normal_(self.means.bias)  # components that begin alike take long to part
        for name, size in (("latent", latent), ("action", action_size)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_std", torch.ones(size))

    def forward(self, latents: Tensor, goals: Tensor, blocks_left: Tensor) -> Mixture:
        """The mixture over z-scored action blocks, for latents and goals `(B, D)` and blocks left `(B, 1)` above 0."""
        here, way = (latents - self.latent_mean) / self.latent_std, (goals - latents) / self.latent_std
        hidden = self.body(torch.cat([here, way, self.clock(blocks_left.log())], dim=1))
        shape = (self.components, self.action_size)
        spreads = NARROWEST + (WIDEST - NARROWEST) * torch.sigmoid(self.spreads(hidden))
        return Mixture(self.weights(hidden), self.means(hidden).unflatten(1, shape), spreads.unflatten(1, shape))

    def propose(self, latents: Tensor, goals: Tensor, blocks_left: Tensor) -> Mixture:
        """The mixture over action blocks in the task's own units."""
        weights, means, spreads = self(latents, goals, blocks_left)
        return Mixture(weights.softmax(1), self.action_mean + self.action_std * means, self.action_std * spreads)
