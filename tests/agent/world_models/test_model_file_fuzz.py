"""Two thousand damaged and malicious files: each runs or is refused in one sentence; nothing crashes, hangs or swells.

    python -m tests.agent.world_models.test_model_file_fuzz 2000      the same by hand, with any number of files

Every second file carries a correct checksum, as an attacker's would.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from agent.world_models import file as model_file
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from tests import tiny
from tests.agent.world_models.edits import before_1_2

FILES = 2000
SEAL_BYTES = 76
NUMBERS = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 64, 2**16, 2**31 - 1, 2**40, 2**63 - 1]
KINDS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
JSON_VALUES = [None, True, -1, 0, 1, 3, 1e308, 10**30, "", "pusht", [], [1], {}, {"a": 1}, "x" * 70_000]


def test_two_thousand_mutated_files_run_or_are_refused():
    done = subprocess.run([sys.executable, "-m", __name__, str(FILES)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-3000:]}"
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["ran"] + summary["refused"] == FILES
    assert summary["ran"] > FILES / 20  # the mutations are not all coarse
    assert summary["refused"] > FILES / 2
    assert summary["peak_mb"] < 1000


def main(files: int) -> None:
    """Mutate, load and run; prints the number of each file before it is tried, and a summary at the end."""
    good = tiny.content(horizon=2, components=2, **tiny.NETWORK | {"history": 2, "depth": 1})
    either = [good, before_1_2(good)]
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.onnx"
        for number in range(files):
            print(number, flush=True)
            rng = np.random.default_rng([7, number])
            path.write_bytes(MUTATIONS[number % len(MUTATIONS)](either[number // len(MUTATIONS) % 2], rng))
            try:
                use(OnnxWorldModel(path, device="cpu", threads=1), rng)
                outcomes["ran"] += 1
            except BadInput as refused:
                outcomes["refused" if len(str(refused).splitlines()) == 1 else "rambling"] += 1
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) // 1024  # type: ignore[index]
    print(json.dumps({"ran": outcomes["ran"], "refused": outcomes["refused"], "peak_mb": peak}))


def use(model: OnnxWorldModel, rng: np.random.Generator) -> None:
    """Call everything that a planner would call."""
    model.encode(rng.integers(0, 256, (2, model.image_size, model.image_size, 3), dtype=np.uint8))
    block = model.action_dim * model.action_block
    for length in range(1, model.history + 1):
        for contexts, plans in ((1, 1), (1, 3), (3, 3)):
            context = rng.standard_normal((contexts, length, model.latent_size))
            past, actions = (
                rng.uniform(-1, 1, shape) for shape in ((contexts, length - 1, block), (plans, model.horizon, block))
            )
            for blocks in (model.horizon, 1):
                model.rollout(context, past, actions[:, :blocks])
    if model.proposes:
        start, goal = rng.standard_normal((2, 3, model.latent_size))
        model.propose(start, goal, rng.uniform(1, 20, (3, 1)))


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


MUTATIONS = [damage, damage_and_seal, change_fields, change_fields, damage, change_metadata]


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


CHANGES = [
    change_kind, swap_kinds, change_input, change_inputs, change_output, change_attribute, add_attribute,
    drop_attribute, move_node, drop_node, change_weight, nudge_weight, nudge_weight, nudge_weight, change_indices,
    rename_weight, outside_weight, change_interface, change_versions,
]  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]))
