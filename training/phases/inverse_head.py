"""A head that tells which actions lead from one latent to a later one: what actions depend on must be seen."""

import torch
from torch import Tensor, nn


class Inverse(nn.Module):
    """A multi-step inverse model, `(latent, later latent, blocks between) -> first of these blocks`, for training only.

    Prediction and regulariser are content with latents that leave out what is small and hard to see. Whoever has to say
    which actions were taken, from any two frames of a window, has to see what they were about.
    """

    def __init__(self, latent: int, action_size: int, width: int = 512):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(2 * latent + 1, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, action_size),
        )

    def forward(self, latents: Tensor, actions: Tensor) -> Tensor:
        """Mean squared error over all pairs of frames, for latents `(B, T, D)` and z-scored blocks `(B, T, k*A)`."""
        first, last = torch.triu_indices(latents.shape[1], latents.shape[1], 1, device=latents.device)
        apart = (last - first).to(latents).expand(len(latents), -1)[..., None]
        guess = self.network(torch.cat([latents[:, first], latents[:, last], apart], dim=-1))
        return (guess - actions[:, first]).square().mean()
