"""The graph of a model file: weights, operators and sizes that do not hold together are refused before a run."""

import os

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from agent.world_models import file as model_file
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from tests import tiny
from tests.agent.world_models.edits import edited, refusal


@pytest.fixture(scope="module")
def good() -> bytes:
    return tiny.content()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(good, value):
    def edit(model):
        weight = next(w for w in model.graph.initializer if w.data_type == TensorProto.FLOAT)
        values = numpy_helper.to_array(weight).copy()
        values.flat[-1] = value
        weight.raw_data = values.tobytes()

    assert "not finite numbers" in refusal(edited(good, edit))


def test_weights_that_overflow_when_they_are_used_are_reported_in_one_sentence(good, tmp_path):
    def edit(model):
        for weight in model.graph.initializer:
            if weight.data_type == TensorProto.FLOAT and len(weight.dims) == 4:
                weight.raw_data = np.full(list(weight.dims), 3e38, np.float32).tobytes()

    path = tmp_path / "huge.onnx"
    path.write_bytes(edited(good, edit))
    with pytest.raises(BadInput, match="latents are not finite numbers"):
        OnnxWorldModel(path, device="cpu").encode(np.full((1, 16, 16, 3), 255, np.uint8))


def test_weights_in_other_files_are_refused_and_not_read(good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(b"\0" * 64)

    def edit(model):
        weight = model.graph.initializer[0]
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="../secret")

    assert "do not have" in refusal(edited(good, edit))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # whoever opens it waits for ever
    assert "do not have" in refusal(
        edited(good, lambda m: m.graph.initializer[0].external_data.add(key="location", value=str(fifo)))
    )


def subgraph(model):
    body = helper.make_graph([], "body", [], [])
    model.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body))


def function(model):
    model.functions.append(helper.make_function("local", "F", [], [], [], [helper.make_opsetid("", 20)]))


def domain(model):
    model.graph.node[0].domain = "com.example"


def sparse(model):
    model.graph.sparse_initializer.add()


def text(model):
    model.graph.node[0].attribute.append(helper.make_attribute("mode", "linear"))


@pytest.mark.parametrize("edit", [subgraph, function, domain, sparse, text])
def test_control_flow_functions_and_foreign_operators_are_refused(good, edit):
    assert "something that world-model files do not have" in refusal(edited(good, edit))


def drop_named(values: str, name: str):
    """An edit that takes the node or the output called `name` out of the graph's `values`."""

    def edit(model):
        those = getattr(model.graph, values)
        those.remove(next(each for each in those if each.name == name))

    return edit


def replace_node(kind: str, new: str, **attributes):
    """An edit that turns the first node of one kind into another."""

    def edit(model):
        node = next(node for node in model.graph.node if node.op_type == kind)
        node.op_type = new
        del node.attribute[:]
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())

    return edit


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (replace_node("Gelu", "RandomNormalLike"), "uses the operator 'RandomNormalLike'"),
        (replace_node("Add", "Expand"), "uses the operator 'Expand'"),
        (replace_node("Conv", "Conv", strides=[0, 0], pads=[1, 1, 1, 1]), "Conv in it does not fit"),
        (replace_node("Conv", "Conv", strides=[1, 1], pads=[2**40] * 4), "Conv in it does not fit"),
        (replace_node("Conv", "Conv", strides=[2, 2]), "Conv in it does not fit"),
        (replace_node("Transpose", "Transpose", perm=[0, 0, 0, 0]), "Transpose in it does not fit"),
        (replace_node("Gather", "Gather", axis=2**62), "Gather in it does not fit"),
        (replace_node("LayerNormalization", "LayerNormalization", axis=0, epsilon=1e-5), "does not fit"),
        (replace_node("Split", "Split", axis=1, num_outputs=2**31), "Split in it does not fit"),
        (lambda m: m.graph.node.pop(0), "reads 'cast_0', which nothing before it gives"),
        (lambda m: m.graph.node.append(m.graph.node[0]), "two things in it are called 'cast_0'"),
        (lambda m: m.graph.node.insert(3, m.graph.node[3]), "two things in it are called"),
        (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "comes twice"),
        (lambda m: m.graph.initializer.add(name="context", data_type=1, raw_data=b"\0" * 4), "the name of an input"),
        (lambda m: m.graph.initializer[0].dims.append(2**60), "does not have the bytes of its shape"),
        (lambda m: m.graph.initializer[0].dims.append(-1), "does not have the bytes of its shape"),
        (lambda m: setattr(m.graph.initializer[0], "data_type", 11), "a type that world-model files do not have"),
        (drop_named("node", "latents_3"), "nothing in it computes latents_3"),
        (lambda m: setattr(m.opset_import[0], "version", 7), "operator set 20"),
        (drop_named("output", "latents_3"), "output latents_3 is missing"),
        (lambda m: setattr(m.graph.node[0], "name", "x" * 200), "a name that is too long or has odd characters"),
    ],
)
def test_graphs_that_do_not_hold_together_are_refused(good, edit, complaint):
    assert complaint in refusal(edited(good, edit))


def test_operators_that_no_entry_point_needs_do_no_harm(good):
    spare = helper.make_node("Relu", ["context"], ["spare"])
    model_file.parse_file(edited(good, lambda m: m.graph.node.append(spare)))


def bomb(count: int, axis: int):
    """An edit after which the encoder doubles its pictures `count` times before it goes on."""

    def edit(model):
        nodes = model.graph.node
        value = nodes[0].output[0]
        for index in range(count):
            nodes.insert(1 + index, helper.make_node("Concat", [value, value], [f"bomb_{index}"], axis=axis))
            value = f"bomb_{index}"
        nodes[1 + count].input[0] = value

    return edit


def test_a_small_file_that_asks_for_much_memory_or_time_is_refused(good):
    assert "Concat in it does not fit" in refusal(edited(good, bomb(1, axis=0)))
    assert "does not fit" in refusal(edited(good, bomb(18, axis=1)))
    assert "would take too much memory or time" in refusal(edited(good, bomb(60, axis=1)))


def test_a_file_of_very_many_small_fields_is_refused_while_it_is_walked(good):
    many = model_file.seal(good[:-76] + b"\x3a" + b"\x80\x89\x7a" + b"\x0a\x00" * 1_000_000)
    assert "more than 400,000 fields" in refusal(many)


def test_weights_that_the_world_model_does_not_need_are_checked_too(good):
    spare = numpy_helper.from_array(np.array([np.nan], np.float32), "spare")
    assert "'spare' holds values that are not finite" in refusal(
        edited(good, lambda m: m.graph.initializer.append(spare))
    )
