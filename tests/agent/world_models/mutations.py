"""Mutations of world-model files: damaged bytes, fields that a parser accepts, and metadata."""

import json

import numpy as np
import onnx
from onnx import helper

from agent.world_models import file as model_file

SEAL_BYTES = 76
NUMBERS = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 64, 2**16, 2**31 - 1, 2**40, 2**63 - 1]
KINDS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
JSON_VALUES = [None, True, -1, 0, 1, 3, 1e308, 10**30, "", "pusht", [], [1], {}, {"a": 1}, "x" * 70_000]
SETTINGS = ["name", "candidates", "iterations", "elites", "keep", "samples", "arrivals", "reach", "horizon", "replan",
            "context", "std", "std_warm", "std_floor", "decay", "colour", "momentum", "agree", "temperature", "cost",
            "answer", "clamp", "every_step", "noise"]  # fmt: skip
PLANNER_VALUES = [None, True, -1, 0, 1, 2, 0.5, 7, 300, 10**6, 10**15, 10**400, 1e308, 1e-320, -1e-300, "cem", "min",
                  ["cem"], "\x1b[2J", {"a": 1}]  # fmt: skip
TEXTS = ["\x1b[31mred", "two\nlines", "\u202e", "x" * 1000, "\ud800", ""]


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, insert or repeat some bytes."""
    damaged = bytearray(content)
    kind, at = rng.integers(4), int(rng.integers(len(damaged)))
    length = int(rng.integers(1, 40))
    if kind == 0:
        for position in rng.integers(len(damaged), size=rng.integers(1, 9)):
            damaged[position] = rng.integers(256)
    elif kind == 1:
        del damaged[at : at + length]
    elif kind == 2:
        damaged[at:at] = rng.bytes(length)
    else:
        damaged[at:at] = damaged[at : at + length]
    return bytes(damaged)


def damage_and_seal(content: bytes, rng: np.random.Generator) -> bytes:
    return model_file.seal(damage(content[:-SEAL_BYTES], rng))


def change_fields(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one to three fields of the graph to values that a parser accepts."""
    model = onnx.ModelProto.FromString(content[:-SEAL_BYTES])
    for _ in range(rng.integers(1, 4)):
        CHANGES[rng.integers(len(CHANGES))](model, rng)
    return model_file.seal(model.SerializeToString())


def change_metadata(content: bytes, rng: np.random.Generator) -> bytes:
    model = onnx.ModelProto.FromString(content[:-SEAL_BYTES])
    values = json.loads(model.metadata_props[0].value)
    name = str(rng.choice(sorted(values)))
    if rng.random() < 0.5:
        values[name] = JSON_VALUES[rng.integers(len(JSON_VALUES))]
    elif isinstance(values[name], int):
        values[name] += int(rng.integers(-2, 3))
    else:
        values[name] = [*values[name], 1] if isinstance(values[name], list) else f"{values[name]}x"
    model.metadata_props[0].value = json.dumps(values)
    return model_file.seal(model.SerializeToString())


def change_planner(content: bytes, rng: np.random.Generator) -> bytes:
    """Other settings of the planner, numbers of actions or text."""
    model = onnx.ModelProto.FromString(content[:-SEAL_BYTES])
    values = json.loads(model.metadata_props[0].value)
    kind = rng.integers(3)
    if kind == 0:
        values["planner"] = {pick(SETTINGS, rng): pick(PLANNER_VALUES, rng) for _ in range(rng.integers(1, 5))}
        values["planner"].setdefault("name", pick(["cem", "guided", "propose", "mppi", "shooting", "lewm"], rng))
    elif kind == 1:
        numbers = values[pick(["action_low", "action_high", "action_mean", "action_std"], rng)]
        numbers[int(rng.integers(len(numbers)))] = pick(PLANNER_VALUES, rng)
    else:
        values[pick(["licence", "preset", "revision", "data", "objective", "task"], rng)] = pick(TEXTS, rng)
    model.metadata_props[0].value = json.dumps(values)
    return model_file.seal(model.SerializeToString())


MUTATIONS = [damage, damage_and_seal, change_fields, change_fields, change_planner, change_metadata]


def pick(things, rng: np.random.Generator):
    return things[int(rng.integers(len(things)))]


def change_kind(model, rng):
    pick(model.graph.node, rng).op_type = pick(KINDS, rng)


def swap_kinds(model, rng):
    pick(model.graph.node, rng).op_type = pick(model.graph.node, rng).op_type


def change_input(model, rng):
    node = pick(model.graph.node, rng)
    names = [*pick(model.graph.node, rng).output, *pick(model.graph.node, rng).input, "", "nothing"]
    node.input[int(rng.integers(len(node.input)))] = pick(names, rng)


def change_inputs(model, rng):
    node, other = pick(model.graph.node, rng), pick(model.graph.node, rng)
    del node.input[:]
    node.input.extend(other.input)


def change_output(model, rng):
    pick(model.graph.node, rng).output[0] = pick(model.graph.node, rng).output[0]


def change_attribute(model, rng):
    attribute = pick(pick([node for node in model.graph.node if node.attribute], rng).attribute, rng)
    kind = rng.integers(5)
    if kind == 0:
        attribute.i = pick(NUMBERS, rng)
    elif kind == 1:
        attribute.f = pick([0.0, -1.0, float("nan"), float("inf"), 1e-38], rng)
    elif kind == 2:
        attribute.ints.append(pick(NUMBERS, rng))
    elif kind == 3 and attribute.ints:
        attribute.ints[int(rng.integers(len(attribute.ints)))] = pick(NUMBERS, rng)
    else:
        attribute.type = int(rng.integers(15))


def add_attribute(model, rng):
    name = pick(["axis", "keepdims", "group", "dilations", "alpha", "to", "auto_pad", "then_branch"], rng)
    value = pick([1, 0.5, [1, 2], "SAME_UPPER", helper.make_graph([], "body", [], [])], rng)
    pick(model.graph.node, rng).attribute.append(helper.make_attribute(name, value))


def drop_attribute(model, rng):
    pick([node for node in model.graph.node if node.attribute], rng).attribute.pop()


def move_node(model, rng):
    node = onnx.NodeProto()
    node.CopyFrom(pick(model.graph.node, rng))
    model.graph.node.insert(int(rng.integers(len(model.graph.node))), node)


def drop_node(model, rng):
    model.graph.node.pop(int(rng.integers(len(model.graph.node))))


def change_weight(model, rng):
    weight = pick(model.graph.initializer, rng)
    kind = rng.integers(5)
    if kind == 0 and weight.dims:
        weight.dims[int(rng.integers(len(weight.dims)))] = pick(NUMBERS, rng)
    elif kind == 1:
        weight.data_type = int(rng.integers(25))
    elif kind == 2:
        weight.raw_data = rng.bytes(len(weight.raw_data))
    elif kind == 3:
        weight.raw_data = weight.raw_data[: int(rng.integers(len(weight.raw_data)))]
    else:
        weight.dims.append(pick(NUMBERS, rng))


def nudge_weight(model, rng):
    weight = pick([weight for weight in model.graph.initializer if weight.data_type == onnx.TensorProto.FLOAT], rng)
    values = np.frombuffer(weight.raw_data, "<f4").copy()
    values[rng.integers(len(values))] = pick([0.0, 1e-45, -1.0, 1e30, 3.4e38], rng)
    weight.raw_data = values.tobytes()


def change_indices(model, rng):
    weight = pick([weight for weight in model.graph.initializer if weight.data_type == onnx.TensorProto.INT64], rng)
    values = np.frombuffer(weight.raw_data, "<i8").copy()
    values[rng.integers(len(values))] = pick(NUMBERS, rng)
    weight.raw_data = values.tobytes()


def rename_weight(model, rng):
    pick(model.graph.initializer, rng).name = pick(model.graph.initializer, rng).name


def outside_weight(model, rng):
    weight = pick(model.graph.initializer, rng)
    weight.external_data.add(key="location", value=pick(["/etc/passwd", "../x", "/dev/zero"], rng))
    if rng.random() < 0.5:
        weight.data_location = onnx.TensorProto.EXTERNAL


def change_interface(model, rng):
    value = pick([*model.graph.input, *model.graph.output], rng)
    kind = rng.integers(3)
    if kind == 0:
        value.name = pick([value.name + "x", "pixels", "latent"], rng)
    elif kind == 1:
        value.type.tensor_type.elem_type = int(rng.integers(25))
    else:
        pick(value.type.tensor_type.shape.dim, rng).dim_value = pick(NUMBERS, rng)


def change_versions(model, rng):
    if rng.random() < 0.5:
        model.ir_version = pick(NUMBERS, rng)
    else:
        model.opset_import[0].version = pick(NUMBERS, rng)


def rename(model, rng):
    """An empty name, or that of something else, for anything that has one."""
    graph = model.graph
    names = ["", *pick(graph.node, rng).output, *pick(graph.node, rng).input, "latent", "context", "pixels"]
    kind = rng.integers(4)
    if kind == 0:
        node = pick([node for node in graph.node if len(node.output) > 1] or graph.node, rng)
        node.output[int(rng.integers(len(node.output)))] = pick(names, rng)
    elif kind == 1:
        pick(graph.node, rng).output.append(pick(names, rng))
    else:
        pick([*graph.input, *graph.output, *graph.initializer], rng).name = pick(names, rng)


def weight_as_output(model, rng):
    output = pick(model.graph.output, rng).name
    for node in [node for node in model.graph.node if output in node.output]:
        model.graph.node.remove(node)
    pick(model.graph.initializer, rng).name = output


def detour(model, rng):
    """Between two operators a copy of a third, perhaps many times over."""
    at = int(rng.integers(len(model.graph.node)))
    value, reader = pick(pick(model.graph.node, rng).output, rng), model.graph.node[at]
    for index in range(pick([1, 1, 1, 2, 30], rng)):
        node = onnx.NodeProto()
        node.CopyFrom(pick(model.graph.node, rng))
        node.input[0] = value
        if rng.random() < 0.3 and len(node.input) > 1:
            node.input[1] = value
        for number in range(len(node.output)):
            node.output[number] = f"detour_{at}_{index}_{number}"
        value = node.output[0]
        model.graph.node.insert(at + index, node)
    reader.input[int(rng.integers(len(reader.input)))] = value


def widen(model, rng):
    """A value joined with itself, or every number of it with every other."""
    at = int(rng.integers(len(model.graph.node)))
    reader = model.graph.node[at]
    value, axis = reader.input[0], int(rng.integers(0, 3))
    if rng.random() < 0.5:
        nodes = [helper.make_node("Concat", [value] * pick([2, 9, 64], rng), ["joined"], axis=axis)]
    else:
        for name, sizes in (("row", [1, -1]), ("column", [-1, 1])):
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(sizes), name))
        nodes = [helper.make_node("Reshape", [value, name], [f"as_{name}"]) for name in ("row", "column")]
        nodes.append(helper.make_node("Mul", ["as_row", "as_column"], ["joined"]))
    for node in reversed(nodes):
        model.graph.node.insert(at, node)
    reader.input[0] = "joined"


def compute_weights(model, rng):
    """An operator that reads weights alone."""
    first, second = (pick(model.graph.initializer, rng).name for _ in range(2))
    model.graph.node.insert(0, helper.make_node(pick(["Add", "Mul", "MatMul"], rng), [first, second], ["folded"]))
    node = pick(model.graph.node, rng)
    node.input[int(rng.integers(len(node.input)))] = "folded"


CHANGES = [
    rename, rename, weight_as_output, detour, detour, widen, compute_weights,
    change_kind, swap_kinds, change_input, change_inputs, change_output, change_attribute, add_attribute,
    drop_attribute, move_node, drop_node, change_weight, nudge_weight, nudge_weight, nudge_weight, change_indices,
    rename_weight, outside_weight, change_interface, change_versions,
]  # fmt: skip
