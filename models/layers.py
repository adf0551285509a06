"""Small parts shared by the presets."""

from collections.abc import Callable

from torch import Tensor, nn


class Head(nn.Sequential):
    """Linear, BatchNorm, GELU, Linear over `(B, D)`; nothing normalises what leaves it, so it can become Gaussian."""

    def __init__(self, inputs: int, hidden: int, outputs: int, activation: Callable[[], nn.Module] = nn.GELU):
        super().__init__(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), activation(), nn.Linear(hidden, outputs))


class ActionEncoder(nn.Module):
    """Embeds an action block `(…, k*A)` as `(…, C)`.

    `bottleneck` squeezes the block first, as LeWM does to 10 channels; LeWM writes it as a 1x1 convolution, which is
    this linear map with one more axis in its weight.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int, bottleneck: int | None = None):
        super().__init__()
        self.squeeze = nn.Linear(inputs, bottleneck) if bottleneck else nn.Identity()
        self.embed = nn.Sequential(nn.Linear(bottleneck or inputs, hidden), nn.SiLU(), nn.Linear(hidden, outputs))

    def forward(self, action_blocks: Tensor) -> Tensor:
        return self.embed(self.squeeze(action_blocks))
