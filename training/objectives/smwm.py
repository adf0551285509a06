"""SMWM: two successive latents must tell which actions lie between them; no distribution is imposed."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from training.objectives.base import Objective


class SMWM(Objective):
    """An inverse model 2D -> 256 -> 256 -> k*A on windows of two frames."""

    frames = 2
    lr = 1e-4
    published: ClassVar = {
        "two-room": {"weight": 0.1},
        "reacher": {"weight": 5.0},
        "pusht": {"weight": 30.0},
        "cube": {"weight": 1.0},
    }

    def __init__(self, latent: int = 192, action_size: int = 10, weight: float = 5.0):
        super().__init__(latent, action_size)
        self.weights = {"inverse": weight}
        self.inverse = nn.Sequential(
            nn.Linear(2 * latent, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, action_size)
        )

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        guess = self.inverse(torch.cat([latents[:-1], latents[1:]], dim=-1))
        return {"inverse": (guess - actions[:-1]).square().mean()}
