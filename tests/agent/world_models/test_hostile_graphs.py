"""Graphs that were made to hurt: names, rows, memory and time; each is refused in one sentence."""

import time

import numpy as np
import pytest
from onnx import helper, numpy_helper

from agent.world_models import file as model_file
from agent.world_models.file import budget
from tests import tiny
from tests.agent.world_models.edits import edited, refusal


@pytest.fixture(scope="module")
def good() -> bytes:
    return tiny.content(components=2)


def node_of(model, output):
    return next(node for node in model.graph.node if output in node.output)


def put_first(model, *nodes):
    """`nodes` before all others."""
    those = [*nodes, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(those)


def before(model, output, *nodes):
    """`nodes` before the one that gives `output`, which then reads what the last of them gives."""
    last = node_of(model, output)
    model.graph.node.remove(last)
    last.input[0] = nodes[-1].output[0]
    model.graph.node.extend([*nodes, last])


def weight(model, name, values):
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))


def empty_output(model):
    split = next(node for node in model.graph.node if node.op_type == "Split")
    split.output[1] = ""


def empty_only_output(model):
    model.graph.node[3].output[0] = ""


def spare_empty_output(model):
    model.graph.node.append(helper.make_node("Split", ["context"], ["a", ""], axis=2, num_outputs=2))


def no_output(model):
    model.graph.node.append(helper.make_node("Relu", ["context"], []))


def empty_weight(model):
    weight(model, "", np.ones(1, np.float32))


def empty_input(model):
    model.graph.input.append(helper.make_tensor_value_info("", 1, ["C", 1]))


def two_inputs(model):
    model.graph.input.append(model.graph.input[0])


def two_outputs(model):
    model.graph.output.append(model.graph.output[0])


def output_with_the_name_of_an_input(model):
    model.graph.node.append(helper.make_node("Relu", ["context"], ["actions"]))


def weight_as_output(model):
    model.graph.node.remove(node_of(model, "latent"))
    weight(model, "latent", np.ones((32, 8), np.float32))


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (empty_output, "has no name"),
        (empty_only_output, "has no name"),
        (spare_empty_output, "has no name"),
        (no_output, "has no name"),
        (empty_weight, "has no name"),
        (empty_input, "an input of it has no name of its own"),
        (two_inputs, "an input of it has no name of its own"),
        (two_outputs, "an output of it has no name of its own"),
        (output_with_the_name_of_an_input, "two things in it are called 'actions'"),
        (weight_as_output, "nothing in it computes latent"),
    ],
)
def test_everything_has_a_name_of_its_own(good, edit, complaint):
    assert complaint in refusal(edited(good, edit))


def read_pictures(model):
    """The rollout from one latent is computed from pictures."""
    last = node_of(model, "latents_1")
    model.graph.node.remove(last)
    model.graph.node.append(helper.make_node("Identity", [node_of(model, "latent").input[0]], ["latents_1"]))


def join_pictures(model):
    """Pictures and candidates in one sum."""
    latent = node_of(model, "latent").input[0]
    before(model, "next_latent_1", helper.make_node("Add", [node_of(model, "next_latent_1").input[0], latent], ["sum"]))


def ignore_candidates(model):
    """Latents that depend on the context alone."""
    model.graph.node.remove(node_of(model, "next_latent_1"))
    weight(model, "shape", [0, 1, 8])
    weight(model, "last", np.array(2))
    model.graph.node.append(helper.make_node("Gather", ["context", "last"], ["newest"], axis=1))
    model.graph.node.append(helper.make_node("Reshape", ["newest", "shape"], ["next_latent_1"]))


@pytest.mark.parametrize("edit", [read_pictures, join_pictures, ignore_candidates])
def test_an_entry_point_reads_its_own_inputs_and_gives_a_row_for_each_of_theirs(good, edit):
    assert "instead of float32" in refusal(edited(good, edit)) or "does not fit" in refusal(edited(good, edit))


def outer_product(model):
    """Every picture with every other: a table of rows and rows."""
    value = node_of(model, "latent").input[0]
    weight(model, "row", [1, -1])
    weight(model, "column", [-1, 1])
    before(
        model,
        "latent",
        helper.make_node("Reshape", [value, "row"], ["wide"]),
        helper.make_node("Reshape", [value, "column"], ["high"]),
        helper.make_node("Mul", ["wide", "high"], ["table"]),
    )


def product_of_rows(model):
    value = node_of(model, "latent").input[0]
    before(
        model,
        "latent",
        helper.make_node("Transpose", [value], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", [value, "turned"], ["table"]),
    )


def rows_as_weights(model):
    value = node_of(model, "latent").input[0]
    before(model, "latent", helper.make_node("Gemm", [value, value], ["table"], transB=1))


def folded_weights(model):
    """Sums of weights, which a session would compute and keep while it opens."""
    weight(model, "tall", np.ones((4096, 1), np.float32))
    weight(model, "broad", np.ones((1, 4096), np.float32))
    put_first(model, helper.make_node("Mul", ["tall", "broad"], ["folded"]))
    before(model, "latent", helper.make_node("Add", [node_of(model, "latent").input[0], "folded"], ["sum"]))


def many_rows_of_weights(model):
    """A weight that gives a picture the rows of thousands."""
    weight(model, "rows", np.ones((4096, 1), np.float32))
    before(model, "latent", helper.make_node("Mul", [node_of(model, "latent").input[0], "rows"], ["sum"]))


def slice_of_rows(model):
    for name, value in (("zero", [0]), ("one", [1]), ("axis", [0])):
        weight(model, name, value)
    before(
        model, "latent", helper.make_node("Slice", [node_of(model, "latent").input[0], "zero", "one", "axis"], ["cut"])
    )


@pytest.mark.parametrize(
    "edit", [outer_product, product_of_rows, rows_as_weights, folded_weights, many_rows_of_weights, slice_of_rows]
)
def test_no_row_meets_another_and_no_weights_are_computed(good, edit):
    assert "does not fit its inputs" in refusal(edited(good, edit))


def test_rows_are_as_many_as_the_budget_of_the_whole_file_allows(good):
    file = model_file.parse_file(good)
    assert file.most_rows["latent"] == budget.MAX_PICTURES
    assert set(file.most_rows) == set(file.work)

    def swell(model, times=64):
        """Each rollout holds a value of many numbers a row for a while."""
        weight(model, "wide", np.ones((times * 1024, 8), np.float32))
        weight(model, "narrow", np.ones((8, times * 1024), np.float32))
        weight(model, "flat", [0, 8])
        weight(model, "full", [0, 1, 8])
        for length in (1, 2, 3):
            own = [f"{kind}_{length}" for kind in ("flat_row", "big_row", "small_row", "back_row")]
            value = node_of(model, f"next_latent_{length}").input[0]
            before(
                model,
                f"next_latent_{length}",
                helper.make_node("Reshape", [value, "flat"], own[:1]),
                helper.make_node("Gemm", [own[0], "wide"], own[1:2], transB=1),
                helper.make_node("Gemm", [own[1], "narrow"], own[2:3], transB=1),
                helper.make_node("Reshape", [own[2], "full"], own[3:]),
            )

    swollen = model_file.parse_file(edited(good, swell))
    rows = swollen.most_rows["latents_1"]
    assert budget.ROWS <= rows < file.most_rows["latents_1"]
    assert rows % budget.ROWS == 0
    live = sum(work.live_bytes for output, work in swollen.work.items() if output != "latent")
    assert rows * live <= budget.MAX_ROW_BYTES
    assert "too much memory" in refusal(edited(good, lambda model: swell(model, times=4096)))


def many_sides(model):
    model.graph.initializer[0].dims.extend([2**62] * 150_000)


def many_small_sides(model):
    model.graph.initializer[0].dims.extend([1] * 300_000)


def long_chain(model):
    value, nodes = node_of(model, "latent").input[0], []
    for name, number in (("zero", [0]), ("eight", [8]), ("axis", [1])):
        weight(model, name, number)
    for index in range(13_000):
        nodes.append(helper.make_node("Concat", [value, value], [f"c{index}"], axis=1))
        nodes.append(helper.make_node("Slice", [f"c{index}", "zero", "eight", "axis"], [f"s{index}"]))
        value = f"s{index}"
    before(model, "latent", *nodes)


def broad_operators(model):
    value, nodes = node_of(model, "latent").input[0], []
    for index in range(5000):
        nodes.append(helper.make_node("Concat", [value] * 50, [f"c{index}"], axis=1))
    last = [helper.make_node("Concat", [node.output[0] for node in nodes], ["all"], axis=1)]
    before(model, "latent", *nodes, *last)


def many_attributes(model):
    node = next(node for node in model.graph.node if node.op_type == "Transpose")
    node.attribute[0].ints.extend(range(300_000))


def many_declared(model):
    model.graph.input[0].type.tensor_type.shape.dim.extend(
        model.graph.input[0].type.tensor_type.shape.dim[:1] * 100_000
    )


@pytest.mark.parametrize(
    "edit", [many_sides, many_small_sides, long_chain, broad_operators, many_attributes, many_declared]
)
def test_a_refusal_takes_no_longer_than_a_few_seconds(good, edit):
    content = edited(good, edit)
    started = time.process_time()
    assert len(refusal(content)) < 300
    assert time.process_time() - started < 5
