"""The graph in a world-model file: cut into entry points, and checked against what the metadata promises."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from agent.world_models.file.budget import Work
from agent.world_models.file.interface import IR_VERSIONS, OPSET, Dims, Values, declared, interface
from agent.world_models.file.metadata import Metadata
from agent.world_models.file.operators import MAX_RANK, Value, infer, multiply_adds
from envs.errors import BadInput

DTYPES: dict[int, type] = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.INT64: np.int64}
FIELDS: dict[int, str] = {AttributeProto.INT: "i", AttributeProto.FLOAT: "f", AttributeProto.INTS: "ints"}
MAX_OPERATORS = 6_000
"""Of one entry point: ONNX Runtime's time to open it grows with their square."""
MAX_ALL_OPERATORS = 18_000
MAX_LINKS = 120_000
"""Inputs and outputs of all operators of all entry points."""
LARGEST = {"B": 32, "N": 300, "P": 300}
"""Rows of the calls that the next two are for, by their letter."""
MAX_MULTIPLY_ADDS = 2 * 10**11
MAX_PLAN_MULTIPLY_ADDS = 8 * 10**12
MAX_VALUES = 4 * 10**9
MAX_SIDE = 2**40
ONE = {"B": 1, "C": 1, "N": 1, "P": 1}


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
    """Refuse a model that is not what `about` says or would take too much; returns what a row of each output takes."""
    versions = [(each.domain, each.version) for each in model.opset_import]
    if versions != [("", OPSET)] or model.ir_version not in IR_VERSIONS:
        raise BadInput(f"it is not written in ONNX operator set {OPSET}")
    inputs, outputs = interface(about)
    _check_declared(model.graph.input, inputs, "input")
    _check_declared(model.graph.output, outputs, "output")
    nodes = list(model.graph.node)
    _check_names(model.graph, nodes, weights)
    parts = {output: dependencies(nodes, output) for output in outputs}
    counts = [len(part) for part in parts.values()]
    if max(counts) > MAX_OPERATORS or sum(counts) > MAX_ALL_OPERATORS:
        raise BadInput(f"it has more than {MAX_OPERATORS:,} operators for an output, or {MAX_ALL_OPERATORS:,} in all")
    if sum(len(node.input) + len(node.output) for part in parts.values() for node in part) > MAX_LINKS:
        raise BadInput(f"its operators have more than {MAX_LINKS:,} inputs and outputs")
    known = known_inputs(about) | weights
    work = {output: _check_output(parts[output], output, outputs[output][1], known, weights) for output in outputs}
    most = max(each.multiply_adds for output, each in work.items() if output != "latent")
    if about.rollouts * most > MAX_PLAN_MULTIPLY_ADDS:
        raise BadInput("its metadata has a planner that would take too much memory or time")
    return work


def _check_output(
    nodes: Sequence[NodeProto], output: str, dims: Dims, known: dict[str, Value], weights: dict[str, Value]
) -> Work:
    """What a row of `output` takes; what its `nodes` give is added to what is `known`."""
    if not nodes:
        raise BadInput(f"nothing in it computes {output}")
    trace(nodes, known)
    value, work = known[output], measure_nodes(nodes, output, known, weights, ONE)
    rows, *rest = dims
    largest = LARGEST[str(rows)]
    if work.multiply_adds * largest > MAX_MULTIPLY_ADDS or work.values * largest > MAX_VALUES:
        raise BadInput(f"computing its {output} would take too long")
    if value.shape != (1, *rest) or value.dtype != np.float32 or value.rows != rows:
        letter = f"{value.rows}" if value.shape[0] == 1 else f"{value.shape[0]}{value.rows}"
        wanted, found = (", ".join(map(str, axes)) for axes in (dims, [letter, *value.shape[1:]]))
        raise BadInput(f"its {output} is {value.dtype} ({found}) instead of float32 ({wanted})")
    return work


def measure(model: ModelProto, output: str, about: Metadata, candidates: int = 1) -> Work:
    """What computing `output` takes, for one picture or for `candidates` from one context."""
    weights, nodes = read_weights(model.graph.initializer), dependencies(model.graph.node, output)
    known = known_inputs(about) | weights
    trace(nodes, known)
    return measure_nodes(nodes, output, known, weights, ONE | {"N": candidates})


def known_inputs(about: Metadata) -> dict[str, Value]:
    """What is known of one row of each input."""
    inputs, _ = interface(about)
    known = {}
    for name, (kind, dims) in inputs.items():
        sizes = tuple(dim for dim in dims if isinstance(dim, int))
        known[name] = Value((1, *sizes), helper.tensor_dtype_to_np_dtype(kind), rows=str(dims[0]))
    return known


def read_weights(tensors: Iterable[TensorProto]) -> dict[str, Value]:
    """What is known of each weight; refuses those whose bytes do not fit, and those that are not finite numbers."""
    weights: dict[str, Value] = {}
    for tensor in tensors:
        name, shape, kind = tensor.name, tuple(tensor.dims), DTYPES.get(tensor.data_type)
        if kind is None or name in weights:
            raise BadInput(f"its weight {name!r} comes twice or has a type that world-model files do not have")
        dtype = np.dtype(kind).newbyteorder("<")
        # The rank comes first: the product of very many sides takes very long.
        fits = len(shape) <= MAX_RANK and all(1 <= side < MAX_SIDE for side in shape)
        if not fits or math.prod(shape) * dtype.itemsize != len(tensor.raw_data):
            raise BadInput(f"its weight {name!r} does not have the bytes of its shape {shape[:MAX_RANK]}")
        values = np.frombuffer(tensor.raw_data, dtype)
        if not np.isfinite(values).all():
            raise BadInput(f"its weight {name!r} holds values that are not finite numbers")
        weights[name] = Value(shape, np.dtype(kind), values.reshape(shape) if dtype.kind == "i" else None)
    return weights


def trace(nodes: Sequence[NodeProto], known: dict[str, Value]) -> None:
    """Go through `nodes` with shapes alone and add what they give to what is `known`."""
    for node in nodes:
        if node.output[:1] and node.output[0] in known:  # another entry point needs it too
            continue
        kind = node.op_type
        try:
            given = [known[name] for name in node.input]
        except KeyError as missing:
            raise BadInput(f"an operator {kind} in it reads {missing}, which nothing before it gives") from None
        results = infer(kind, given, _attributes(node), len(node.output))
        if any(math.prod(result.shape) > MAX_VALUES for result in results):
            raise BadInput("computing it would take too much memory or time")
        known.update(zip(node.output, results, strict=True))


def measure_nodes(
    nodes: Sequence[NodeProto], output: str, known: dict[str, Value], weights: dict[str, Value], rows: dict[str, int]
) -> Work:
    """What computing `output` with `nodes` takes when a call has so many `rows` of each letter."""
    last_use = {name: index for index, node in enumerate(nodes) for name in node.input}
    live: dict[str, int] = {}
    live_bytes = most_bytes = values = work = read = 0
    for index, node in enumerate(nodes):
        reads, gives = list(node.input), list(node.output)
        results = [known[name] for name in gives]
        times = rows[results[0].rows or ""]
        work += times * multiply_adds(node.op_type, [known[name] for name in reads], results)
        read += sum(weights[name].bytes for name in reads if name in weights)
        for name, value in zip(gives, results, strict=True):
            live[name] = times * value.bytes
            live_bytes += live[name]
            values += times * math.prod(value.shape)
        most_bytes = max(most_bytes, live_bytes)
        for name in (*reads, *gives):
            if last_use.get(name, index) <= index and name != output:
                live_bytes -= live.pop(name, 0)
    stored = sum(weights[name].bytes for name in last_use if name in weights)
    return Work(work, values, most_bytes, stored, read)


def dependencies(nodes: Sequence[NodeProto], output: str) -> list[NodeProto]:
    """The nodes that `output` depends on, in their order."""
    needed, found = {output}, []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            found.append(node)
            needed.update(node.input)
    return found[::-1]


def _check_names(graph: GraphProto, nodes: Iterable[NodeProto], weights: dict[str, Value]) -> None:
    """Everything has a name of its own: ONNX Runtime takes an empty one for an output that is left out."""
    seen = {value.name for value in graph.input}
    if clash := sorted(seen & weights.keys()):
        raise BadInput(f"its weight {clash[0]!r} has the name of an input")
    seen |= weights.keys()
    for node in nodes:
        for name in node.output:
            if name in seen:
                raise BadInput(f"two things in it are called {name!r}")
            seen.add(name)
    if "" in seen or any(not node.output for node in nodes):
        raise BadInput("something in it has no name")


def _check_declared(values: Iterable[ValueInfoProto], expected: Values, what: str) -> None:
    """All that is expected is there; what a newer minor version adds is not looked at."""
    values = list(values)
    found = declared(values)
    if len(found) != len(values) or "" in found:
        raise BadInput(f"an {what} of it has no name of its own")
    for name, described in expected.items():
        if found.get(name) != described:
            raise BadInput(f"its {what} {name} is missing or not of the type and shape that its metadata says")


def _attributes(node: NodeProto) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if len(node.attribute) > MAX_RANK or any(len(attribute.ints) > MAX_RANK for attribute in node.attribute):
        raise BadInput(f"an operator {node.op_type} in it has too many attributes")
    for attribute in node.attribute:
        field = FIELDS.get(attribute.type)
        present = {descriptor.name for descriptor, _ in attribute.ListFields()}
        if field is None or present != {"name", "type", field} or attribute.name in values:
            raise BadInput(f"an operator {node.op_type} in it has an odd attribute {attribute.name!r}")
        value = getattr(attribute, field)
        values[attribute.name] = list(value) if field == "ints" else value
    return values
