"""One training step's arithmetic: a world model, an objective, and how they meet."""

import torch
from torch import Tensor, nn

from models import WorldModel
from training.distributed import gather
from training.objectives import Loss, Objective
from training.phases.inverse_head import Inverse


class Learner(nn.Module):
    """Windows in, loss out; what `torchrun` wraps and what a checkpoint holds."""

    def __init__(
        self,
        model: WorldModel,
        objective: Objective,
        open_loop: bool = False,
        teacher_forcing: bool = True,
        inverse: float = 0.0,
    ):
        super().__init__()
        self.model = model
        self.objective = objective
        self.open_loop = open_loop
        self.teacher_forcing = teacher_forcing
        self.inverse = Inverse(model.latent, objective.action_size) if inverse else None
        self.inverse_weight = inverse

    def forward(self, pixels: Tensor, actions: Tensor, generator: torch.Generator) -> Loss:
        """The loss of uint8 frames `(B, T, H, W, 3)` and raw action blocks `(B, T, k*A)`.

        With `teacher_forcing` the predictor sees true latents; with `open_loop` it rolls on from the window's first, as
        a planner does; with both, both errors count. Targets get gradient too. The last block leaves the window.
        With a weight `inverse`, a head must tell the actions from the latents. If the encoder is frozen, `pixels`
        already holds latents `(B, T, D)`.
        """
        latents = pixels if pixels.is_floating_point() else self.model.encode(pixels)
        errors = []
        if self.teacher_forcing:
            parts = latents[:, :-1], latents[:, 1:], actions[:, :-1]
            before, after, between = (self.stretches(part) for part in parts)
            errors.append(self.model.predict(before, between) - after)
        if self.open_loop:
            errors.append(self.model.rollout(latents[:, :1], actions[:, :0], actions[:, :-1]) - latents[:, 1:])
        taken = self.model.normalise_actions(actions)
        everyone, by_everyone = (gather(part).transpose(0, 1) for part in (latents, taken))
        loss = self.objective(everyone, torch.cat([error.flatten() for error in errors]), by_everyone, generator)
        return loss if self.inverse is None else loss.plus("inverse", self.inverse(latents, taken), self.inverse_weight)

    def stretches(self, window: Tensor) -> Tensor:
        """Every stretch `(B*S, h, …)` of a window `(B, T, …)` that is as long as the predictor's history."""
        return window.unfold(1, self.model.history, 1).movedim(-1, 2).flatten(0, 1)
