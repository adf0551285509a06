"""The operators that a world-model file may use: what shapes they give and how many multiply-adds they take.

A graph made of these, with every shape known beforehand, cannot ask for more memory or time than was looked at. Every
rule refuses what our writer does not write, even where ONNX allows it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from envs.errors import BadInput

Shape = tuple[int, ...]
MAX_RANK = 6


class Value(NamedTuple):
    """What is known of a value before anything runs: shape, type, and for whole numbers their constant content."""

    shape: Shape
    dtype: np.dtype
    constant: np.ndarray | None = None

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Misfit(Exception):
    """An operator does not fit its inputs."""


Rule = Callable[..., "Shape | list[Shape]"]
RULES: dict[str, tuple[Rule, dict[str, type]]] = {}
"""Operator to its rule and the attributes it must have; a rule takes the inputs' values and the attributes."""


def infer(kind: str, inputs: Sequence[Value], attributes: dict[str, Any], outputs: int) -> list[Value]:
    """The values that an operator gives."""
    if kind not in RULES:
        raise BadInput(f"it uses the operator {kind!r}, which world-model files do not use")
    rule, expected = RULES[kind]
    try:
        if {name: type(value) for name, value in attributes.items()} != expected:
            raise Misfit
        given = rule(*inputs, **attributes)
    except (Misfit, TypeError):
        shapes = ", ".join(str(value.shape) for value in inputs)
        raise BadInput(f"an operator {kind} in it does not fit its inputs of shapes {shapes}") from None
    shapes_out = given if isinstance(given, list) else [given]
    dtype = _cast(attributes["to"]) if kind == "Cast" else inputs[0].dtype
    if len(shapes_out) != outputs:
        raise BadInput(f"an operator {kind} in it has {outputs} outputs instead of {len(shapes_out)}")
    return [Value(shape, dtype) for shape in shapes_out]


def multiply_adds(kind: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    """Multiply-adds of the matrix operators; the others count as none."""
    size = math.prod(outputs[0].shape)
    if kind == "Gemm":
        return size * inputs[0].shape[1]
    if kind == "MatMul":
        return size * inputs[0].shape[-1]
    if kind == "Conv":
        return size * math.prod(inputs[1].shape[1:])
    return 0


def rule(*kinds: str, **attributes: type) -> Callable[[Rule], Rule]:
    """Register a rule for operators with these attributes."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, (function, attributes)))
        return function

    return register


def need(condition: bool) -> None:
    if not condition:
        raise Misfit


def floats(*values: Value) -> None:
    """All of one floating type."""
    need(values[0].dtype.kind == "f" and all(value.dtype == values[0].dtype for value in values))


def constant(value: Value) -> list[int]:
    """Whole numbers that are written in the file."""
    need(value.constant is not None and value.constant.size <= 2 * MAX_RANK)
    assert value.constant is not None
    return value.constant.reshape(-1).tolist()


def axis_of(shape: Shape, axis: int) -> int:
    need(-len(shape) <= axis < len(shape))
    return axis % len(shape)


def broadcast(*shapes: Shape) -> Shape:
    longest = max(map(len, shapes))
    sides = zip(*((1,) * (longest - len(shape)) + shape for shape in shapes), strict=True)
    sizes = [{size for size in side if size != 1} for side in sides]
    need(all(len(size) <= 1 for size in sizes))
    return tuple(size.pop() if size else 1 for size in sizes)


@rule("Gelu", "Relu", "Sigmoid", "Log", "Identity")
def _elementwise(x: Value) -> Shape:
    floats(x)
    return x.shape


@rule("Cast", to=int)
def _cast_shape(x: Value, to: int) -> Shape:
    need(x.dtype.kind == "f" or x.dtype == np.uint8)
    _cast(to)
    return x.shape


def _cast(to: int) -> np.dtype:
    need(to in (1, 10))
    return np.dtype(np.float32 if to == 1 else np.float16)


@rule("Softmax", axis=int)
def _softmax(x: Value, axis: int) -> Shape:
    floats(x)
    axis_of(x.shape, axis)
    return x.shape


@rule("LayerNormalization", axis=int, epsilon=float)
def _layer_norm(x: Value, *affine: Value, axis: int, epsilon: float) -> Shape:
    floats(x, *affine)
    need(axis == -1 and 0 < epsilon <= 1 and len(affine) in (1, 2) and len(x.shape) >= 1)
    need(all(part.shape == x.shape[-1:] for part in affine))
    return x.shape


@rule("Add", "Mul")
def _binary(x: Value, y: Value) -> Shape:
    floats(x, y)
    return broadcast(x.shape, y.shape)


@rule("Gemm", transB=int)
def _gemm(x: Value, weight: Value, *bias: Value, transB: int) -> Shape:
    floats(x, weight, *bias)
    need(transB == 1 and len(x.shape) == len(weight.shape) == 2 and x.shape[1] == weight.shape[1] and len(bias) <= 1)
    need(all(part.shape == weight.shape[:1] for part in bias))
    return x.shape[0], weight.shape[0]


@rule("MatMul")
def _matmul(x: Value, y: Value) -> Shape:
    floats(x, y)
    need(min(len(x.shape), len(y.shape)) >= 2 and x.shape[-1] == y.shape[-2])
    return *broadcast(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]


@rule("Conv", strides=list, pads=list)
def _conv(x: Value, weight: Value, *bias: Value, strides: list[int], pads: list[int]) -> Shape:
    floats(x, weight, *bias)
    need(len(x.shape) == len(weight.shape) == 4 and x.shape[1] == weight.shape[1] and len(bias) <= 1)
    need(all(part.shape == weight.shape[:1] for part in bias) and min(weight.shape) >= 1)
    need(
        len(strides) == 2 and len(pads) == 4 and all(1 <= s <= 64 for s in strides) and all(0 <= p <= 64 for p in pads)
    )
    sides = [(x.shape[2 + i] + pads[i] + pads[2 + i] - weight.shape[2 + i]) // strides[i] + 1 for i in range(2)]
    need(min(sides) >= 1)
    return x.shape[0], weight.shape[0], *sides


@rule("Transpose", perm=list)
def _transpose(x: Value, perm: list[int]) -> Shape:
    need(len(perm) >= 1 and sorted(perm) == list(range(len(x.shape))))
    return tuple(x.shape[axis] for axis in perm)


@rule("Reshape")
def _reshape(x: Value, shape: Value) -> Shape:
    sizes = constant(shape)
    need(len(sizes) <= MAX_RANK and sizes.count(-1) <= 1 and all(size >= -1 for size in sizes))
    need(all(size != 0 or index < len(x.shape) for index, size in enumerate(sizes)))
    sizes = [x.shape[index] if size == 0 else size for index, size in enumerate(sizes)]
    known, total = math.prod(size for size in sizes if size != -1), math.prod(x.shape)
    need(known > 0 and (total % known == 0 if -1 in sizes else total == known))
    return tuple(total // known if size == -1 else size for size in sizes)


@rule("Flatten")
def _flatten(x: Value) -> Shape:
    need(len(x.shape) >= 1)
    return x.shape[0], math.prod(x.shape[1:])


@rule("Concat", axis=int)
def _concat(*parts: Value, axis: int) -> Shape:
    need(len(parts) >= 1)
    floats(*parts)
    axis = axis_of(parts[0].shape, axis)
    rests = {(*part.shape[:axis], -1, *part.shape[axis + 1 :]) for part in parts if len(part.shape) > axis}
    need(len(rests) == 1 and len({len(part.shape) for part in parts}) == 1)
    return *parts[0].shape[:axis], sum(part.shape[axis] for part in parts), *parts[0].shape[axis + 1 :]


@rule("Split", axis=int, num_outputs=int)
def _split(x: Value, axis: int, num_outputs: int) -> list[Shape]:
    axis = axis_of(x.shape, axis)
    need(1 <= num_outputs <= 64 and x.shape[axis] % num_outputs == 0)
    return [(*x.shape[:axis], x.shape[axis] // num_outputs, *x.shape[axis + 1 :])] * num_outputs


@rule("Gather", axis=int)
def _gather(x: Value, index: Value, axis: int) -> Shape:
    axis = axis_of(x.shape, axis)
    need(index.shape == () and 0 <= constant(index)[0] < x.shape[axis])
    return *x.shape[:axis], *x.shape[axis + 1 :]


@rule("Slice")
def _slice(x: Value, starts: Value, ends: Value, axes: Value) -> Shape:
    need(starts.shape == ends.shape == axes.shape == (1,))
    start, end, axis = (constant(value)[0] for value in (starts, ends, axes))
    axis = axis_of(x.shape, axis)
    need(0 <= start < end <= x.shape[axis])
    return *x.shape[:axis], end - start, *x.shape[axis + 1 :]


@rule("Pad")
def _pad(x: Value, pads: Value) -> Shape:
    sizes = constant(pads)
    need(len(sizes) == 2 * len(x.shape) and all(0 <= size <= 64 for size in sizes))
    return tuple(
        size + before + after for size, before, after in zip(x.shape, sizes, sizes[len(x.shape) :], strict=False)
    )


@rule("ReduceSum", keepdims=int)
def _reduce_sum(x: Value, axes: Value, keepdims: int) -> Shape:
    floats(x)
    need(axes.shape == (1,) and keepdims == 1)
    axis = axis_of(x.shape, constant(axes)[0])
    return *x.shape[:axis], 1, *x.shape[axis + 1 :]
