"""The compact encoder: strided convolutions, nothing else."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import Tensor, nn


class ConvEncoder(nn.Sequential):
    """One strided convolution with BatchNorm per entry of `channels`, then all features in a row.

    The first strides by `stem`, the others by 2, with kernels of twice the stride: `(B, 3, S, S)` to
    `(B, channels[-1] * (S / stem / 2^(stages-1))^2)`. Pictures arrive channels-last and stay so: the flattened
    features run over rows, columns, then channels, and cost no copy.
    """

    def __init__(self, channels: Sequence[int], stem: int = 2, activation: Callable[[], nn.Module] = nn.GELU):
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise((3, *channels)):
            stride = 2 if layers else stem
            # No bias: the norm that follows would remove it.
            convolution = nn.Conv2d(inputs, outputs, 2 * stride, stride, padding=stride // 2, bias=False)
            layers += [convolution, nn.BatchNorm2d(outputs), activation()]
        super().__init__(*layers, FlattenChannelsLast())


class FlattenChannelsLast(nn.Module):
    """`(B, C, H, W)` to `(B, H*W*C)`."""

    def forward(self, features: Tensor) -> Tensor:
        return features.movedim(1, -1).flatten(1)
