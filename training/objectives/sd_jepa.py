"""SD-JEPA: a few coordinates follow progress through a triplet loss, the others are kept Gaussian."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from training.objectives.base import Objective, directions, project
from training.objectives.lewm import FORCE, statistic


class SDJEPA(Objective):
    """The canonical variant: Epps-Pulley on the content, a cosine triplet on the first `progression` coordinates."""

    unit_force = FORCE
    grows_with_batch = True
    published: ClassVar = {"pusht": {"progression": 8}, "reacher": {"progression": 4}}

    def __init__(
        self,
        latent: int = 192,
        action_size: int = 10,
        weight: float = 0.09,
        triplet: float = 0.1,
        progression: int = 2,
        margin: float = 0.2,
        directions: int = 1024,
    ):
        super().__init__(latent, action_size)
        self.weights = {"ep": weight, "triplet": triplet}
        self.progression = progression
        self.margin = margin
        self.directions = directions

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        progress, content = latents[..., : self.progression], latents[..., self.progression :]
        units = directions(self.directions, content.shape[-1], generator, latents)
        batch = latents.shape[1]
        roll = int(torch.randint(1, max(batch, 2), (), generator=generator))
        anchor, positive = progress[-2], progress[-1]
        near = F.cosine_similarity(anchor, positive, dim=-1)
        far = F.cosine_similarity(anchor, anchor.roll(roll, 0), dim=-1)
        return {
            "ep": statistic(project(content, units)).mean(),
            "triplet": torch.relu(far - near + self.margin).mean(),
        }
