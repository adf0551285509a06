"""A model file is input: whatever is wrong with it is said in one sentence before anything is run."""

import json
import os
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import envs
from agent.world_models import file as model_file
from agent.world_models import registry as world_model
from agent.world_models.file.metadata import FORMAT, Metadata
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from tests import tiny


@pytest.fixture(scope="module")
def good() -> bytes:
    return tiny.content()


def edited(content: bytes, edit) -> bytes:
    """`content` after `edit(model)`, with a fresh seal."""
    model = onnx.ModelProto.FromString(content)
    del model.metadata_props[1:]
    edit(model)
    return model_file.seal(model.SerializeToString())


def described(content: bytes, **changes) -> bytes:
    """`content` with other metadata, freshly sealed; a value of None takes the entry out."""

    def edit(model):
        values = json.loads(model.metadata_props[0].value) | changes
        model.metadata_props[0].value = json.dumps({k: v for k, v in values.items() if v is not None})

    return edited(content, edit)


def refusal(content: bytes) -> str:
    """The sentence with which `content` is refused."""
    with pytest.raises(BadInput) as refused:
        model_file.parse(content)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_good_file_is_read(good, tmp_path):
    (tmp_path / "good.onnx").write_bytes(good)
    model = OnnxWorldModel(tmp_path / "good.onnx", device="cpu")
    assert (model.task, model.image_size, model.latent_size, model.history, model.horizon) == ("two-room", 16, 8, 3, 4)
    assert model.provider.startswith("CPU")
    assert model_file.parse(edited(good, lambda model: None)).metadata == model.metadata


@pytest.mark.parametrize("length", [0, 1, 70, 1000, -1, -77, -5000])
def test_a_file_that_is_cut_off_is_refused(good, length):
    assert "checksum" in refusal(good[:length])


@pytest.mark.parametrize("content", [b"", b"\0" * 500, b"#!/bin/sh\necho hello\n" * 20, os.urandom(5000)])
def test_a_file_of_another_kind_is_refused(content):
    assert "another kind of file" in refusal(content)


def test_any_changed_byte_is_noticed(good):
    for position in range(0, len(good), 997):
        damaged = bytearray(good)
        damaged[position] ^= 1
        assert "damaged" in refusal(bytes(damaged))


def test_every_refusal_names_the_file(tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_text("hello")
    with pytest.raises(BadInput, match=f"^{re.escape(str(path))} is no world model that can be used: .*checksum"):
        OnnxWorldModel(path)


def test_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path / "missing.onnx", tmp_path):
        with pytest.raises(BadInput, match="cannot read the model"):
            OnnxWorldModel(path)


def test_a_file_that_is_too_large_is_not_even_read(tmp_path):
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(50 * 2**30)  # a hole, which takes no space
    with pytest.raises(BadInput, match="more than 128 MB"):
        OnnxWorldModel(path)


def test_another_onnx_model_is_refused(good):
    node = helper.make_node("Relu", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    other = helper.make_model(helper.make_graph([node], "other", values[:1], values[1:]))
    assert "checksum" in refusal(other.SerializeToString())
    assert "without the metadata entry 'qqworld'" in refusal(model_file.seal(other.SerializeToString()))
    assert "without the metadata entry 'qqworld'" in refusal(edited(good, lambda m: m.ClearField("metadata_props")))


def test_a_newer_major_version_is_refused(good):
    assert "format 2.0, and this program reads 1.x" in refusal(described(good, format="2.0"))
    for odd in ("1", "one", "1.0.0", "-1.0", 1.0, "", "1.x"):
        assert "which is no version" in refusal(described(good, format=odd))


def test_a_newer_minor_version_may_say_and_hold_more(good, tmp_path):
    def edit(model):
        node = helper.make_node("Einsum", ["context"], ["proposal"], equation="chd->cd")
        model.graph.node.append(node)
        model.graph.output.append(helper.make_tensor_value_info("proposal", TensorProto.FLOAT, ["C", 8]))

    newer = described(good, format="1.7", rewards=3)
    path = tmp_path / "newer.onnx"
    path.write_bytes(newer)
    assert OnnxWorldModel(path, device="cpu").encode(np.zeros((1, 16, 16, 3), np.uint8)).shape == (1, 8)
    assert "unknown entry 'rewards'" in refusal(described(good, format=FORMAT, rewards=3))
    # Operators that no known entry point needs are neither checked nor run, as long as they are plain.
    assert "do not have" in refusal(edited(newer, edit))
    plain = edited(newer, lambda model: (edit(model), model.graph.node[-1].ClearField("attribute")))
    assert model_file.parse(plain).metadata.format == "1.7"


def test_a_model_of_another_task_is_refused(good, tmp_path):
    path = tmp_path / "two-room.onnx"
    path.write_bytes(good)
    assert world_model.load(str(path), "two-room", device="cpu").task == "two-room"
    with pytest.raises(BadInput, match="is a model of two-room, not of pusht"):
        world_model.load(str(path), envs.make("pusht"), device="cpu")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"latent_size": 9}, "input context is missing or not of the type and shape"),
        ({"image_size": 32}, "input pixels"),
        ({"history": 2}, "input context"),
        ({"history": 4}, "input context"),
        ({"horizon": 5}, "input actions"),
        ({"action_block": 4}, "input past_actions"),
        ({"action_dim": 3}, "2 numbers in action_low, but actions have 3"),
        ({"image_size": 0}, "image_size 0, which must lie from 8 to 1024"),
        ({"horizon": 10**9}, "horizon"),
        ({"history": True}, "history 'True', which is no int"),
        ({"steps": -1}, "steps -1"),
        ({"latent_size": "8"}, "latent_size '8', which is no int"),
        ({"action_low": [-1, "x"]}, "action_low 'x', which is no float"),
        ({"action_high": [-2.0, 1.0]}, "not below its action_high"),
        ({"action_std": [0.0, 1.0]}, "action_std outside"),
        ({"action_mean": [1e400, 0.0]}, "action_mean"),
        ({"look": "loud"}, "look 'loud'"),
        ({"task": "../etc"}, "no task's name"),
        ({"planner": {"a": {"b": 1}}}, "planner"),
        ({"planner": []}, "planner"),
        ({"network": None}, "lacks network"),
    ],
)
def test_metadata_that_does_not_fit_is_refused(good, changes, complaint):
    assert complaint in refusal(described(good, **changes))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 60_000, '{"format": ' + "1" * 5000 + "}", "\ufffd"])
def test_metadata_that_is_no_object_is_refused(text):
    with pytest.raises(BadInput, match="its metadata"):
        Metadata.from_json(text)


def test_metadata_of_100_megabytes_is_refused_before_it_is_parsed(good):
    def edit(model):
        model.metadata_props[0].value = '{"task": "' + "x" * 100_000_000 + '"}'

    assert "metadata has 100,000,012 bytes, more than the 65,536 allowed" in refusal(edited(good, edit))


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
        (lambda m: m.graph.node.append(m.graph.node[0]), None),
        (lambda m: m.graph.node.insert(3, m.graph.node[3]), "two things in it are called"),
        (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "comes twice"),
        (lambda m: m.graph.initializer.add(name="context", data_type=1, raw_data=b"\0" * 4), "the name of an input"),
        (lambda m: m.graph.initializer[0].dims.append(2**60), "does not have the bytes of its shape"),
        (lambda m: m.graph.initializer[0].dims.append(-1), "does not have the bytes of its shape"),
        (lambda m: setattr(m.graph.initializer[0], "data_type", 11), "a type that world-model files do not have"),
        (lambda m: m.graph.node.pop(), "nothing in it computes latents_3"),
        (lambda m: setattr(m.opset_import[0], "version", 7), "operator set 20"),
        (lambda m: m.graph.output.pop(), "output latents_3 is missing"),
        (lambda m: setattr(m.graph.node[0], "name", "x" * 200), "a name that is too long or has odd characters"),
    ],
)
def test_graphs_that_do_not_hold_together_are_refused(good, edit, complaint):
    if complaint is None:  # what no entry point needs does no harm
        model_file.parse(edited(good, edit))
    else:
        assert complaint in refusal(edited(good, edit))


def bomb(count: int):
    """An edit after which the encoder doubles its pictures `count` times before it goes on."""

    def edit(model):
        nodes = model.graph.node
        value = nodes[0].output[0]
        for index in range(count):
            nodes.insert(1 + index, helper.make_node("Concat", [value, value], [f"bomb_{index}"], axis=0))
            value = f"bomb_{index}"
        nodes[1 + count].input[0] = value

    return edit


def test_a_small_file_that_asks_for_much_memory_or_time_is_refused(good):
    assert "its latent is float32 (8, 8) instead of" in refusal(edited(good, bomb(1)))
    assert "would take too much memory or time" in refusal(edited(good, bomb(18)))
    assert "would take too long" in refusal(edited(good, bomb(60)))


def test_a_file_of_very_many_small_fields_is_refused_while_it_is_walked(good):
    many = model_file.seal(good[:-76] + b"\x3a" + b"\x80\x89\x7a" + b"\x0a\x00" * 1_000_000)
    assert "more than 1,000,000 fields" in refusal(many)


def test_weights_that_the_world_model_does_not_need_are_checked_too(good):
    spare = numpy_helper.from_array(np.array([np.nan], np.float32), "spare")
    assert "'spare' holds values that are not finite" in refusal(
        edited(good, lambda m: m.graph.initializer.append(spare))
    )
