"""Sub-JEPA: the Epps-Pulley statistic inside fixed random subspaces."""

from typing import ClassVar

import torch
from torch import Tensor

from envs.errors import BadInput
from training.objectives.base import Objective, directions, project
from training.objectives.lewm import FORCE, statistic


class SubJEPA(Objective):
    """Frozen subspaces of latent / K dimensions, each orthonormal in itself, with fresh directions inside each.

    The publication draws 1024 directions in every subspace; here `directions` are shared among them, because 32 times
    LeWM's price buys nothing (LeWM's own ablation finds no difference between 64 and 1024).
    """

    unit_force = FORCE
    grows_with_batch = True
    published: ClassVar = {"pusht": {"subspaces": 16}}
    bases: Tensor

    def __init__(
        self,
        latent: int = 192,
        action_size: int = 10,
        weight: float = 0.09,
        subspaces: int = 32,
        directions: int = 1024,
        seed: int = 0,
    ):
        super().__init__(latent, action_size)
        size = latent // subspaces
        if size < 1:
            raise BadInput(f"{subspaces} subspaces do not fit in a latent of {latent}: lower `subspaces`")
        self.weights = {"ep": weight}
        self.directions = max(1, directions // subspaces)
        generator = torch.Generator().manual_seed(seed)
        bases = torch.linalg.qr(torch.randn(subspaces, latent, size, generator=generator)).Q
        self.register_buffer("bases", bases.transpose(1, 2).contiguous())

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        count, size, _ = self.bases.shape
        inside = directions(count * self.directions, size, generator, latents).view(count, self.directions, size)
        return {"ep": statistic(project(latents, (inside @ self.bases).flatten(0, 1))).mean()}
