"""The learning-rate schedule, and a module with its optimiser as tensors that a checkpoint can hold."""

import math

import torch
from torch import Tensor, nn

from models.run_folder import OPTIMISER


def learning_rate(step: int, length: int, warmup: float, peak: float) -> float:
    """Of the update that ends step 1, 2, …: linear warm-up for a share of the `length`, then a cosine to 0."""
    warm = max(1, round(warmup * length))
    if step <= warm:
        return peak * step / warm
    progress = min(1.0, (step - warm) / max(1, length - warm))
    return peak * 0.5 * (1 + math.cos(math.pi * progress))


def pack(module: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """All that is needed to go on."""
    tensors = dict(module.state_dict())
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"{OPTIMISER}{index}.{name}": value for name, value in state.items()}
    return tensors


def unpack(tensors: dict[str, Tensor], module: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Go on from what `pack` gave."""
    packed = optimiser.state_dict()
    for name in [name for name in tensors if name.startswith(OPTIMISER)]:
        index, key = name.removeprefix(OPTIMISER).split(".")
        packed["state"].setdefault(int(index), {})[key] = tensors.pop(name)
    module.load_state_dict(tensors)
    optimiser.load_state_dict(packed)
