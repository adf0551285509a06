"""How much arithmetic a rollout takes when it is written plainly."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from models import WorldModel


@torch.no_grad()
def naive_multiply_adds(model: WorldModel, horizon: int) -> int:
    """Multiply-adds of one candidate over `horizon` blocks from one latent, one plain predictor call per step."""
    block = model.action_block * model.action_dim
    counter = FlopCounterMode(display=False)
    with counter:
        model.rollout(torch.zeros(1, 1, model.latent), torch.zeros(1, 0, block), torch.zeros(1, horizon, block))
    return counter.get_total_flops() // 2
