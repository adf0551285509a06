"""A model file is input: whatever is wrong with it is said in one sentence before anything is run."""

import os
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import envs
from agent.world_models import file as model_file
from agent.world_models import registry as world_model
from agent.world_models.file.metadata import FORMAT, Metadata
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from tests import tiny
from tests.agent.world_models.edits import described, edited, refusal


@pytest.fixture(scope="module")
def good() -> bytes:
    return tiny.content()


def test_a_good_file_is_read(good, tmp_path):
    (tmp_path / "good.onnx").write_bytes(good)
    model = OnnxWorldModel(tmp_path / "good.onnx", device="cpu")
    assert (model.task, model.image_size, model.latent_size, model.history, model.horizon) == ("two-room", 16, 8, 3, 4)
    assert model.provider.startswith("CPU")
    assert model_file.parse_file(edited(good, lambda model: None)).metadata == model.metadata


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
    with pytest.raises(BadInput, match=f"^{re.escape(str(path))} is not a usable world model: .*checksum"):
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
        assert "which is not a version" in refusal(described(good, format=odd))


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
    assert model_file.parse_file(plain).metadata.format == "1.7"


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
        ({"history": True}, "history 'True', which is not of type int"),
        ({"steps": -1}, "steps -1"),
        ({"latent_size": "8"}, "latent_size '8', which is not of type int"),
        ({"action_low": [-1, "x"]}, "action_low 'x', which is not of type float"),
        ({"action_high": [-2.0, 1.0]}, "not below its action_high"),
        ({"action_std": [0.0, 1.0]}, "action_std outside"),
        ({"action_mean": [1e400, 0.0]}, "action_mean"),
        ({"action_mean": [10**400, 0.0]}, "action_mean"),
        ({"look": "loud"}, "look 'loud'"),
        ({"task": "../etc"}, "cannot be the name of a task"),
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
