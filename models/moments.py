"""An encoder that says where objects are and how they lie: spatial moments of a few feature maps."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

T = Any
SPREAD = 0.25
"""About the size of an object, in halves of the picture: second and third moments get the scale of the first."""


class MomentsEncoder(nn.Sequential):
    """A strided convolution, one convolution per further entry of `channels`, and the moments of the last maps.

    `(B, 3, S, S)` to `(B, 9 * channels[-1])`. Where a network of strides must learn from examples which features in
    different places belong to one object, the moments of a map that shows the object are its position, its elongation
    and direction, and which end is which.
    """

    def __init__(
        self, image_size: int, channels: Sequence[int], stem: int = 4, activation: Callable[[], nn.Module] = nn.ReLU
    ):
        # No bias: the norm that follows would remove it.
        layers: list[nn.Module] = [nn.Conv2d(3, channels[0], 2 * stem, stem, padding=stem // 2, bias=False)]
        layers.append(nn.BatchNorm2d(channels[0]))
        for inputs, outputs in pairwise(channels):
            layers += [activation(), nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)]
        super().__init__(*layers, Moments(image_size // stem))
        self.features = 9 * channels[-1]


class Moments(nn.Module):
    """Maps `(B, C, S, S)`, as logarithms of densities, to their mean and central moments `(B, 9*C)`.

    In this order: x, y; xx, xy, yy; xxx, xxy, xyy, yyy.
    """

    powers: Tensor

    def __init__(self, side: int):
        super().__init__()
        line = (torch.arange(side) + 0.5) * 2 / side - 1
        y, x = torch.meshgrid(line, line, indexing="ij")
        powers = [x, y, x * x, x * y, y * y, x**3, x * x * y, x * y * y, y**3]
        self.register_buffer("powers", torch.stack(powers, -1).flatten(0, 1), persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        pixels = maps.movedim(1, -1).flatten(1, 2)  # maps are channels-last, and so should their gradient be
        return torch.cat(central(*(self.powers.T @ pixels.softmax(1)).unbind(1)), 1)


def central(x: T, y: T, xx: T, xy: T, yy: T, xxx: T, xxy: T, xyy: T, yyy: T) -> list[T]:
    """Mean and central moments from the mean powers, in units of `SPREAD`; sums and products of whatever comes in."""
    cxx, cxy, cyy = xx - x * x, xy - x * y, yy - y * y
    cxxx, cyyy = xxx - x * (3 * cxx + x * x), yyy - y * (3 * cyy + y * y)
    cxxy, cxyy = xxy - y * xx - 2 * x * cxy, xyy - x * yy - 2 * y * cxy
    second, third = SPREAD**-2, SPREAD**-3
    return [x, y, *(second * m for m in (cxx, cxy, cyy)), *(third * m for m in (cxxx, cxxy, cxyy, cyyy))]
