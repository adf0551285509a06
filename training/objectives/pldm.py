"""PLDM as benchmarked against LeWM: VICReg plus smoothness and variance over time."""

import torch
from torch import Tensor

from training.objectives.base import Objective
from training.objectives.vicreg import covariance, hinge


class PLDM(Objective):
    """The weights a 256-point grid chose on PushT; it gave the inverse model and the covariance over time weight 0."""

    def __init__(
        self,
        latent: int = 192,
        action_size: int = 10,
        std: float = 18.0,
        cov: float = 12.0,
        temporal_std: float = 0.7,
        temporal_align: float = 0.2,
    ):
        super().__init__(latent, action_size)
        self.weights = {"std": std, "cov": cov, "temporal_std": temporal_std, "temporal_align": temporal_align}

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        return {
            "std": hinge(latents, dim=1),
            "cov": covariance(latents),
            "temporal_std": hinge(latents, dim=0),
            "temporal_align": (latents[1:] - latents[:-1]).square().mean(),
        }
