"""How each torch module is written as ONNX nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import cast

import numpy as np
from onnx import TensorProto
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from envs.errors import BadInput
from export.graph import Graph
from models import Proposals, WorldModel
from models.conv import FlattenChannelsLast
from models.layers import ActionEncoder
from models.moments import Moments, central
from models.proposal_network import NARROWEST, WIDEST
from models.vit import Block as ViTBlock
from models.vit import ViT


@singledispatch
def emit(module: nn.Module, graph: Graph, x: str) -> str:
    """Append `module`, in evaluation mode, applied to the value `x`; returns the name of the result."""
    raise BadInput(f"a network with a {type(module).__name__} cannot be exported: teach export/networks.py to write it")


@emit.register
def _(module: nn.Sequential, graph: Graph, x: str) -> str:
    for part in fused(module):
        x = emit(part, graph, x)
    return x


def fused(parts: nn.Sequential) -> Iterator[nn.Module]:
    """The parts with every BatchNorm folded into the linear map before it."""
    pending: nn.Module | None = None
    for part in parts:
        if isinstance(part, nn.BatchNorm1d) and isinstance(pending, nn.Linear):
            pending = fuse_linear_bn_eval(pending, part)
        elif isinstance(part, nn.BatchNorm2d) and isinstance(pending, nn.Conv2d):
            pending = fuse_conv_bn_eval(pending, part)
        else:
            if pending is not None:
                yield pending
            pending = part
    if pending is not None:
        yield pending


@emit.register
def _(module: nn.Linear, graph: Graph, x: str) -> str:
    bias = [] if module.bias is None else [graph.weight(module.bias)]
    return graph.op("Gemm", x, graph.weight(module.weight), *bias, transB=1)


@emit.register
def _(module: nn.Conv2d, graph: Graph, x: str) -> str:
    bias = [] if module.bias is None else [graph.weight(module.bias)]
    (top, left), padding = module.stride, module.padding
    return graph.op("Conv", x, graph.weight(module.weight), *bias, strides=[top, left], pads=[*padding, *padding])


@emit.register
def _(module: nn.LayerNorm, graph: Graph, x: str) -> str:
    size = module.normalized_shape[0]
    scale = np.ones(size) if module.weight is None else module.weight
    bias = [] if module.bias is None else [graph.weight(module.bias)]
    return graph.op("LayerNormalization", x, graph.weight(scale), *bias, axis=-1, epsilon=module.eps)


@emit.register
def _(module: nn.Identity | nn.Dropout, graph: Graph, x: str) -> str:
    return x


@emit.register
def _(module: nn.GELU, graph: Graph, x: str) -> str:
    return graph.op("Gelu", x)


@emit.register
def _(module: nn.ReLU, graph: Graph, x: str) -> str:
    return graph.op("Relu", x)


@emit.register
def _(module: nn.SiLU, graph: Graph, x: str) -> str:
    return graph.op("Mul", x, graph.op("Sigmoid", x))


@emit.register
def _(module: FlattenChannelsLast, graph: Graph, x: str) -> str:
    return graph.op("Flatten", graph.op("Transpose", x, perm=[0, 2, 3, 1]))


@emit.register
def _(module: Moments, graph: Graph, x: str) -> str:
    densities = graph.op("Softmax", graph.op("Reshape", x, graph.indices(0, 0, -1)), axis=-1)
    raw = graph.op("MatMul", densities, graph.weight(module.powers))
    count = module.powers.shape[1]
    parts = graph.ops("Split", raw, outputs=count, axis=2, num_outputs=count)
    moments = central(*(Term(graph, part) for part in parts))
    return graph.op("Flatten", graph.op("Concat", *(moment.value for moment in moments), axis=1))


@dataclass(frozen=True)
class Term:
    """A value of a graph that can be added, subtracted and multiplied, so that one formula serves torch and ONNX."""

    graph: Graph
    value: str

    def __mul__(self, other: "Term | float") -> "Term":
        factor = other.value if isinstance(other, Term) else self.graph.weight(float(other))
        return Term(self.graph, self.graph.op("Mul", self.value, factor))

    __rmul__ = __mul__

    def __add__(self, other: "Term") -> "Term":
        return Term(self.graph, self.graph.op("Add", self.value, other.value))

    def __sub__(self, other: "Term") -> "Term":
        return self + -1 * other


@emit.register
def _(module: ActionEncoder, graph: Graph, x: str) -> str:
    return emit(module.embed, graph, emit(module.squeeze, graph, x))


@emit.register
def _(module: ViT, graph: Graph, x: str) -> str:
    width, count = module.patches.out_channels, module.position.shape[1]
    patches = graph.op("Reshape", emit(module.patches, graph, x), graph.indices(0, width, count - 1))
    # The class token joins as the position of an empty first patch, so that it needs no copy per picture.
    patches = graph.op("Pad", graph.op("Transpose", patches, perm=[0, 2, 1]), graph.indices(0, 1, 0, 0, 0, 0))
    position = module.position.detach().clone()
    position[:, :1] += module.class_token.detach()
    tokens = graph.op("Add", patches, graph.weight(position))
    for block in module.blocks:
        tokens = _vit_block(cast(ViTBlock, block), graph, tokens, only_class=block is module.blocks[-1])
    return emit(module.norm, graph, graph.op("Gather", tokens, graph.index(0), axis=1))


def _vit_block(block: ViTBlock, graph: Graph, tokens: str, only_class: bool) -> str:
    """One transformer block over `(B, T, width)`; with `only_class` all but the first token serve as keys alone."""
    heads, width = block.heads, block.query.in_features

    def linear(module: nn.Linear, x: str) -> str:
        return graph.op("Add", graph.op("MatMul", x, graph.weight(module.weight.T)), graph.weight(module.bias))

    def split(x: str, perm: list[int]) -> str:
        return graph.op("Transpose", graph.op("Reshape", x, graph.indices(0, -1, heads, width // heads)), perm=perm)

    x = emit(block.norm1, graph, tokens)
    key, value = split(linear(block.key, x), [0, 2, 3, 1]), split(linear(block.value, x), [0, 2, 1, 3])
    if only_class:
        bounds = graph.indices(0), graph.indices(1), graph.indices(1)
        tokens, x = (graph.op("Slice", each, *bounds) for each in (tokens, x))
    query = split(linear(block.query, x), [0, 2, 1, 3])
    scores = graph.op("Mul", graph.op("MatMul", query, key), graph.weight((width // heads) ** -0.5))
    attended = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
    attended = graph.op("Reshape", graph.op("Transpose", attended, perm=[0, 2, 1, 3]), graph.indices(0, -1, width))
    tokens = graph.op("Add", tokens, linear(block.out, attended))
    first, _, second = cast(list[nn.Linear], list(block.mlp))
    hidden = graph.op("Gelu", linear(first, emit(block.norm2, graph, tokens)))
    return graph.op("Add", tokens, linear(second, hidden))


def emit_encode(model: WorldModel, graph: Graph, pixels: str) -> str:
    """Latents `(B, D)` of uint8 pictures `(B, H, W, 3)`."""
    to = TensorProto.FLOAT if graph.dtype == np.float32 else TensorProto.FLOAT16
    scale = graph.weight(1 / (255 * model.pixel_std))
    shift = graph.weight(-model.pixel_mean / model.pixel_std)
    x = graph.op("Add", graph.op("Mul", graph.op("Cast", pixels, to=to), scale), shift)
    images = graph.op("Transpose", x, perm=[0, 3, 1, 2])
    return emit(model.projector, graph, emit(model.encoder, graph, images))


def emit_actions(model: WorldModel, graph: Graph, blocks: str) -> str:
    """Embeddings `(M, W)` of action blocks `(M, k*A)` in the task's own units."""
    size = model.action_block * model.action_dim
    scale = 1 / model.action_std.repeat(model.action_block)
    shift = -model.action_mean.repeat(model.action_block) * scale
    x = graph.op("Add", graph.op("Mul", blocks, graph.weight(scale)), graph.weight(shift))
    return emit(model.action_encoder, graph, graph.op("Reshape", x, graph.indices(-1, size)))


def emit_proposals(model: Proposals, graph: Graph, start: str, goal: str, blocks_left: str) -> str:
    """Weight, mean and spread of each Gaussian `(P, M, 1 + 2*k*A)`, in the task's own units."""

    def scaled(x: str, scale: Tensor | float, shift: Tensor | float) -> str:
        return graph.op("Add", graph.op("Mul", x, graph.weight(scale)), graph.weight(shift))

    def split(x: str, size: int) -> str:
        return graph.op("Reshape", x, graph.indices(0, model.components, size))

    each = 1 / model.latent_std
    way = graph.op("Mul", graph.op("Add", goal, graph.op("Mul", start, graph.weight(-1.0))), graph.weight(each))
    clock = emit(model.clock, graph, graph.op("Log", blocks_left))
    here = scaled(start, each, -model.latent_mean * each)
    hidden = emit(model.body, graph, graph.op("Concat", here, way, clock, axis=1))
    weights = graph.op("Softmax", emit(model.weights, graph, hidden), axis=1)
    means = scaled(split(emit(model.means, graph, hidden), model.action_size), model.action_std, model.action_mean)
    spreads = scaled(graph.op("Sigmoid", emit(model.spreads, graph, hidden)), WIDEST - NARROWEST, NARROWEST)
    spreads = graph.op("Mul", split(spreads, model.action_size), graph.weight(model.action_std))
    return graph.op("Concat", split(weights, 1), means, spreads, axis=2)
