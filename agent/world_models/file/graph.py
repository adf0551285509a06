"""The graph in a world-model file: cut into entry points, and checked against what the metadata promises."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from agent.world_models.file.interface import IR_VERSIONS, OPSET, Dims, Values, declared, interface
from agent.world_models.file.metadata import Metadata
from agent.world_models.file.operators import MAX_RANK, Shape, Value, infer, multiply_adds
from envs.errors import BadInput

DTYPES: dict[int, type] = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.INT64: np.int64}
FIELDS: dict[int, str] = {AttributeProto.INT: "i", AttributeProto.FLOAT: "f", AttributeProto.INTS: "ints"}
MAX_OPERATORS = 40_000
MAX_LIVE_BYTES = 512 * 1024**2
MAX_MULTIPLY_ADDS = 10**12
MAX_VALUES = 10**10
LARGEST = {"B": 4, "C": 300, "N": 300, "P": 300}
"""Pictures, contexts, candidates and proposals of the calls that these limits are for."""


@dataclass(frozen=True)
class Work:
    """What one call of an entry point takes."""

    multiply_adds: int
    live_bytes: int
    """Most bytes of intermediate values at a time."""
    weight_bytes: int
    """Bytes of the weights, counted once for each operator that reads them."""


def entry_point(model: ModelProto, output: str) -> ModelProto:
    """The part of `model` that computes `output`, as a model of its own."""
    graph = model.graph
    nodes = dependencies(graph.node, output)
    needed = {name for node in nodes for name in node.input}
    part = GraphProto(
        name=output,
        node=nodes,
        input=[value for value in graph.input if value.name in needed],
        output=[value for value in graph.output if value.name == output],
        initializer=[weight for weight in graph.initializer if weight.name in needed],
    )
    return ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=part)


def check(model: ModelProto, about: Metadata, weights: dict[str, Value]) -> dict[str, Work]:
    """Refuse a model that is not what `about` says or would take too much; returns what each output takes at most."""
    versions = [(each.domain, each.version) for each in model.opset_import]
    if versions != [("", OPSET)] or model.ir_version not in IR_VERSIONS:
        raise BadInput(f"it is not written in ONNX operator set {OPSET}")
    inputs, outputs = interface(about)
    _check_declared(model.graph.input, inputs, "input")
    _check_declared(model.graph.output, outputs, "output")
    nodes, given = list(model.graph.node), known_inputs(about, LARGEST)
    parts = {output: dependencies(nodes, output) for output in outputs}
    if sum(map(len, parts.values())) > MAX_OPERATORS:
        raise BadInput(f"it has more than {MAX_OPERATORS:,} operators")
    takes = {}
    for output, (_, dims) in outputs.items():
        value, work = trace(parts[output], output, given, weights)
        takes[output] = work
        if work.live_bytes > MAX_LIVE_BYTES or work.multiply_adds > MAX_MULTIPLY_ADDS:
            raise BadInput(f"computing its {output} would take too much memory or time")
        if value.shape != _sized(dims, LARGEST) or value.dtype != np.float32:
            raise BadInput(f"its {output} is {value.dtype} {value.shape} instead of float32 {_sized(dims, LARGEST)}")
    return takes


def measure(model: ModelProto, output: str, about: Metadata, candidates: int = 1) -> Work:
    """What computing `output` takes, for one picture or for `candidates` from one context."""
    given = known_inputs(about, {"B": 1, "C": 1, "N": candidates, "P": 1})
    return trace(dependencies(model.graph.node, output), output, given, read_weights(model.graph.initializer))[1]


def known_inputs(about: Metadata, sizes: dict[str, int]) -> dict[str, Value]:
    """What is known of each input when the axes that a caller chooses have these `sizes`."""
    inputs, _ = interface(about)
    return {
        name: Value(_sized(dims, sizes), np.dtype(np.uint8 if kind == TensorProto.UINT8 else np.float32))
        for name, (kind, dims) in inputs.items()
    }


def read_weights(tensors: Iterable[TensorProto]) -> dict[str, Value]:
    """What is known of each weight; refuses those whose bytes do not fit, and those that are not finite numbers."""
    weights: dict[str, Value] = {}
    for tensor in tensors:
        name, shape, kind = tensor.name, tuple(tensor.dims), DTYPES.get(tensor.data_type)
        if kind is None or name in weights:
            raise BadInput(f"its weight {name!r} comes twice or has a type that world-model files do not have")
        dtype = np.dtype(kind).newbyteorder("<")
        size = math.prod(shape) * dtype.itemsize
        if len(shape) > MAX_RANK or min(shape, default=1) < 1 or size != len(tensor.raw_data):
            raise BadInput(f"its weight {name!r} does not have the bytes of its shape {shape}")
        values = np.frombuffer(tensor.raw_data, dtype)
        if not np.isfinite(values).all():
            raise BadInput(f"its weight {name!r} holds values that are not finite numbers")
        weights[name] = Value(shape, np.dtype(kind), values.reshape(shape) if dtype.kind == "i" else None)
    return weights


def trace(
    nodes: Sequence[NodeProto], output: str, inputs: dict[str, Value], weights: dict[str, Value]
) -> tuple[Value, Work]:
    """Go through `nodes` with shapes alone; returns what is known of `output` and what computing it takes."""
    if clash := sorted(inputs.keys() & weights.keys()):
        raise BadInput(f"its weight {clash[0]!r} has the name of an input")
    known = inputs | weights
    last_use = {name: index for index, node in enumerate(nodes) for name in node.input}
    live: dict[str, int] = {}
    live_bytes = most_bytes = values = work = read = 0
    for index, node in enumerate(nodes):
        kind, reads, gives = node.op_type, list(node.input), list(node.output)
        try:
            given = [known[name] for name in reads]
        except KeyError as missing:
            raise BadInput(f"an operator {kind} in it reads {missing}, which nothing before it gives") from None
        results = infer(kind, given, _attributes(node), len(gives))
        work += multiply_adds(kind, given, results)
        read += sum(weights[name].bytes for name in reads if name in weights)
        for name, value in zip(gives, results, strict=True):
            if name in known:
                raise BadInput(f"two things in it are called {name!r}")
            known[name] = value
            live[name] = value.bytes
            live_bytes += value.bytes
            values += math.prod(value.shape)
        if values > MAX_VALUES:
            raise BadInput(f"computing its {output} would take too long")
        most_bytes = max(most_bytes, live_bytes)
        for name in (*reads, *gives):
            if last_use.get(name, index) <= index and name != output:
                live_bytes -= live.pop(name, 0)
    if output not in known:
        raise BadInput(f"nothing in it computes {output}")
    return known[output], Work(work, most_bytes, read)


def dependencies(nodes: Sequence[NodeProto], output: str) -> list[NodeProto]:
    """The nodes that `output` depends on, in their order."""
    needed, found = {output}, []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            found.append(node)
            needed.update(node.input)
    return found[::-1]


def _sized(dims: Dims, sizes: dict[str, int]) -> Shape:
    return tuple(sizes[dim] if isinstance(dim, str) else dim for dim in dims)


def _check_declared(values: Iterable[ValueInfoProto], expected: Values, what: str) -> None:
    """All that is expected is there; what a newer minor version adds is not looked at."""
    found = declared(values)
    for name, described in expected.items():
        if found.get(name) != described:
            raise BadInput(f"its {what} {name} is missing or not of the type and shape that its metadata says")


def _attributes(node: NodeProto) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        field = FIELDS.get(attribute.type)
        present = {descriptor.name for descriptor, _ in attribute.ListFields()}
        if field is None or present != {"name", "type", field} or attribute.name in values:
            raise BadInput(f"an operator {node.op_type} in it has an odd attribute {attribute.name!r}")
        value = getattr(attribute, field)
        values[attribute.name] = list(value) if field == "ints" else value
    return values
