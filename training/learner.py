"""One training step's arithmetic: a world model, an objective, and how they meet."""

import torch
from torch import Tensor, nn

from models import WorldModel
from training.distributed import gather
from training.objectives import Loss, Objective


class Learner(nn.Module):
    """Windows in, loss out; what `torchrun` wraps and what a checkpoint holds."""

    def __init__(self, model: WorldModel, objective: Objective, open_loop: bool = False):
        super().__init__()
        self.model, self.objective, self.open_loop = model, objective, open_loop

    def forward(self, pixels: Tensor, actions: Tensor, generator: torch.Generator) -> Loss:
        """The loss of uint8 frames `(B, T, H, W, 3)` and raw action blocks `(B, T, k*A)`.

        The predictor sees true latents (teacher forcing); targets get gradient too. The last block leaves the window.
        With `open_loop` it also rolls on from the window's first latent, as a planner does, and both errors count.
        """
        latents = self.model.encode(pixels)
        predicted = self.model.predict(latents[:, :-1], actions[:, :-1])
        if self.open_loop:
            rolled = self.model.rollout(latents[:, :1], actions[:, :0], actions[:, :-1])
            predicted = torch.stack([predicted, rolled])
        everyone = gather(latents).transpose(0, 1)
        taken = gather(self.model.normalise_actions(actions)).transpose(0, 1)
        return self.objective(everyone, predicted - latents[:, 1:], taken, generator)
