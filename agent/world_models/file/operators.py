"""The operators that a world-model file may use: what shapes they give and how many multiply-adds they take.

A call computes many rows (pictures, candidates) and none of them reads another: every rule keeps the rows on the first
axis, so memory and work are those of one row times the rows of the call. Every rule refuses what our writer does not
write, even where ONNX allows it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from envs.errors import BadInput

Shape = tuple[int, ...]
MAX_RANK = 6
MAX_INPUTS = 64


class Value(NamedTuple):
    """What is known of a value before anything runs: shape, type, and for whole numbers their constant content."""

    shape: Shape
    """Of one row of a call; the first axis is as long for each of its rows."""
    dtype: np.dtype
    constant: np.ndarray | None = None
    rows: str | None = None
    """The letter of the input axis that the rows are of; None for a weight."""

    @property
    def bytes(self) -> int:
        """Of one row."""
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
        need(len(inputs) <= MAX_INPUTS and all(0 not in value.shape for value in inputs))
        need({name: type(value) for name, value in attributes.items()} == expected)
        rows = rows_of(inputs)
        given = rule(*inputs, **attributes)
    except (Misfit, TypeError):
        shapes = ", ".join(str(value.shape) for value in inputs[:4]) + (", ..." if len(inputs) > 4 else "")
        raise BadInput(f"an operator {kind} in it does not fit its inputs of shapes {shapes}") from None
    shapes_out = given if isinstance(given, list) else [given]
    dtype = _cast(attributes["to"]) if kind == "Cast" else inputs[0].dtype
    if len(shapes_out) != outputs:
        raise BadInput(f"an operator {kind} in it has {outputs} outputs instead of {len(shapes_out)}")
    return [Value(shape, dtype, rows=rows) for shape in shapes_out]


def rows_of(values: Sequence[Value]) -> str:
    """Whose rows come out: contexts (C) join candidates (N), nothing else mixes, and weights alone compute nothing.

    What weights alone give would be computed, and kept, while a session opens.
    """
    letters = {value.rows for value in values if value.rows}
    need(len(letters) == 1 or letters == {"C", "N"})
    return letters.pop() if len(letters) == 1 else "N"


def multiply_adds(kind: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> int:
    """Multiply-adds of one row in the matrix operators; the others count as none."""
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


def weights(*values: Value) -> None:
    """All are in the file, none depends on an input."""
    need(all(value.rows is None for value in values))


def inner_axis(x: Value, axis: int) -> int:
    """An axis of values with rows that is not the rows' own."""
    need(x.rows is not None and -len(x.shape) < axis < len(x.shape) and axis != 0)
    return axis % len(x.shape)


def broadcast(*shapes: Shape) -> Shape:
    """The shape of elementwise operators."""
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
    inner_axis(x, axis)
    return x.shape


@rule("LayerNormalization", axis=int, epsilon=float)
def _layer_norm(x: Value, *affine: Value, axis: int, epsilon: float) -> Shape:
    floats(x, *affine)
    weights(*affine)
    need(axis == -1 and 0 < epsilon <= 1 and len(affine) in (1, 2) and len(x.shape) >= 2)
    need(all(part.shape == x.shape[-1:] for part in affine))
    return x.shape


@rule("Add", "Mul")
def _binary(x: Value, y: Value) -> Shape:
    floats(x, y)
    first, *others = sorted((x, y), key=lambda value: value.rows is None)  # a weight is not the first
    rank = len(first.shape)
    for other in others:
        need(len(other.shape) == rank if other.rows else len(other.shape) <= rank)
        need(len(other.shape) < rank or other.shape[0] == (first.shape[0] if other.rows == first.rows else 1))
        need(other.rows in (None, first.rows) or first.shape[0] == 1)
    return first.shape[0], *broadcast(
        *(value.shape[1:] if len(value.shape) == rank else value.shape for value in (x, y))
    )


@rule("Gemm", transB=int)
def _gemm(x: Value, weight: Value, *bias: Value, transB: int) -> Shape:
    floats(x, weight, *bias)
    weights(weight, *bias)
    need(transB == 1 and len(x.shape) == len(weight.shape) == 2 and x.shape[1] == weight.shape[1] and len(bias) <= 1)
    need(all(part.shape == weight.shape[:1] for part in bias))
    return x.shape[0], weight.shape[0]


@rule("MatMul")
def _matmul(x: Value, y: Value) -> Shape:
    floats(x, y)
    need(x.rows is not None and len(x.shape) >= 2 and len(y.shape) >= 2 and x.shape[-1] == y.shape[-2])
    if y.rows is None:
        need(len(y.shape) == 2)
    else:  # a product within each row
        need(y.rows == x.rows and len(x.shape) >= 3 and x.shape[:-2] == y.shape[:-2])
    return *x.shape[:-1], y.shape[-1]


@rule("Conv", strides=list, pads=list)
def _conv(x: Value, weight: Value, *bias: Value, strides: list[int], pads: list[int]) -> Shape:
    floats(x, weight, *bias)
    weights(weight, *bias)
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
    need(len(perm) >= 1 and perm[0] == 0 and sorted(perm) == list(range(len(x.shape))))
    return tuple(x.shape[axis] for axis in perm)


@rule("Reshape")
def _reshape(x: Value, shape: Value) -> Shape:
    sizes = constant(shape)
    need(1 <= len(sizes) <= MAX_RANK and sizes[0] in (0, -1) and sizes.count(-1) <= 1 and min(sizes) >= -1)
    need(all(size != 0 or index < len(x.shape) for index, size in enumerate(sizes)))
    sizes = [x.shape[index] if size == 0 else size for index, size in enumerate(sizes)]
    known, total = math.prod(size for size in sizes if size != -1), math.prod(x.shape)
    need(total % known == 0 if -1 in sizes else total == known)
    return tuple(total // known if size == -1 else size for size in sizes)


@rule("Flatten")
def _flatten(x: Value) -> Shape:
    return x.shape[0], math.prod(x.shape[1:])


@rule("Concat", axis=int)
def _concat(*parts: Value, axis: int) -> Shape:
    floats(*parts)
    axis = inner_axis(parts[0], axis)
    need(len({part.rows for part in parts}) == 1 and len({len(part.shape) for part in parts}) == 1)
    need(len({(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts}) == 1)
    return *parts[0].shape[:axis], sum(part.shape[axis] for part in parts), *parts[0].shape[axis + 1 :]


@rule("Split", axis=int, num_outputs=int)
def _split(x: Value, axis: int, num_outputs: int) -> list[Shape]:
    axis = inner_axis(x, axis)
    need(1 <= num_outputs <= MAX_INPUTS and x.shape[axis] % num_outputs == 0)
    return [(*x.shape[:axis], x.shape[axis] // num_outputs, *x.shape[axis + 1 :])] * num_outputs


@rule("Gather", axis=int)
def _gather(x: Value, index: Value, axis: int) -> Shape:
    axis = inner_axis(x, axis)
    need(index.shape == () and 0 <= constant(index)[0] < x.shape[axis])
    return *x.shape[:axis], *x.shape[axis + 1 :]


@rule("Slice")
def _slice(x: Value, starts: Value, ends: Value, axes: Value) -> Shape:
    need(starts.shape == ends.shape == axes.shape == (1,))
    start, end, axis = (constant(value)[0] for value in (starts, ends, axes))
    axis = inner_axis(x, axis)
    need(0 <= start < end <= x.shape[axis])
    return *x.shape[:axis], end - start, *x.shape[axis + 1 :]


@rule("Pad")
def _pad(x: Value, pads: Value) -> Shape:
    sizes, rank = constant(pads), len(x.shape)
    need(len(sizes) == 2 * rank and all(0 <= size <= 64 for size in sizes) and sizes[0] == sizes[rank] == 0)
    return tuple(size + before + after for size, before, after in zip(x.shape, sizes, sizes[rank:], strict=False))


@rule("ReduceSum", keepdims=int)
def _reduce_sum(x: Value, axes: Value, keepdims: int) -> Shape:
    floats(x)
    need(axes.shape == (1,) and keepdims == 1)
    axis = inner_axis(x, constant(axes)[0])
    return *x.shape[:axis], 1, *x.shape[axis + 1 :]
