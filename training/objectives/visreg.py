"""VISReg: scale and centre by moments, shape by sliced Wasserstein distance."""

import torch
from torch import Tensor

from training.objectives.base import Objective, directions, project
from training.objectives.targets import by_rank


class VISReg(Objective):
    """Three parts with inner weight 1, the whole with weight 4.5, as used for world models."""

    lr = 1e-4
    unit_force = 1.0  # of its scale and centre terms; the shape term is blind to both

    def __init__(self, latent: int = 192, action_size: int = 10, weight: float = 4.5, directions: int = 1024):
        super().__init__(latent, action_size)
        self.weights = {"scale": weight, "shape": weight, "centre": weight}
        self.directions = directions

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        batch = latents.shape[1]
        mean = latents.mean(1, keepdim=True)
        centred = latents - mean
        # Clamped under the root, where the slope is finite also for constant latents.
        sigma = centred.square().mean(1, keepdim=True).clamp_min(1e-12).sqrt()
        units = directions(self.directions, latents.shape[-1], generator, latents)
        x = project(centred / sigma.detach(), units)
        levels = torch.arange(1, batch + 1, dtype=torch.float64) / (batch + 1)
        return {
            "scale": (sigma - 1).square().mean(),
            "shape": (x - by_rank(x, torch.special.ndtri(levels))).square().mean(),
            "centre": mean.square().mean(),
        }
