"""VICReg: a hinge on each dimension's standard deviation and a penalty on covariances."""

import torch
from torch import Tensor

from training.objectives.base import Objective


def hinge(x: Tensor, dim: int) -> Tensor:
    """Mean of relu(1 - std) with the unbiased variance along `dim`; a single sample counts as variance 0."""
    centred = x - x.mean(dim, keepdim=True)
    variance = centred.square().sum(dim) / max(x.shape[dim] - 1, 1)
    return torch.relu(1 - torch.sqrt(variance + 1e-4)).mean()


def covariance(latents: Tensor) -> Tensor:
    """Squared off-diagonal covariances over the batch, divided by D^2 - D; mean over time, `(T, B, D)` to a scalar."""
    _, batch, size = latents.shape
    centred = latents - latents.mean(1, keepdim=True)
    matrix = centred.transpose(1, 2) @ centred / max(batch - 1, 1)
    squares = matrix.square().sum((1, 2)) - matrix.diagonal(dim1=1, dim2=2).square().sum(1)
    return (squares / max(size * size - size, 1)).mean()


class VICReg(Objective):
    """Variance and covariance alone, with the only weights tuned for such a model (PLDM's)."""

    def __init__(self, latent: int = 192, action_size: int = 10, std: float = 18.0, cov: float = 12.0):
        super().__init__(latent, action_size)
        self.weights = {"std": std, "cov": cov}

    def terms(self, latents: Tensor, actions: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        return {"std": hinge(latents, dim=1), "cov": covariance(latents)}
