"""What the tests of objectives share: a seeded generator and the loss of plain latents."""

import torch

from training import objectives

torch.set_num_threads(1)  # the test workers already share the cores


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def loss_of(objective: objectives.Objective, latents: torch.Tensor, seed: int = 0) -> objectives.Loss:
    latents = latents[: objective.frames]
    actions = torch.zeros(*latents.shape[:2], objective.action_size)
    return objective(latents, latents[1:] - latents[:-1], actions, generator(seed))
