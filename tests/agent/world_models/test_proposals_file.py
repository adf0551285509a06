"""Proposals in a world-model file: they say what torch says, a file may lack them, and hostile ones are refused."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

from agent.world_models import file as model_file
from agent.world_models.onnx import OnnxWorldModel
from envs.errors import BadInput
from export import parity
from export.__main__ import Export, export
from export.source import read_run
from tests import tiny
from tests.agent.world_models.edits import before_1_2, described, edited, refusal


@pytest.fixture(scope="module")
def good() -> bytes:
    return tiny.content(components=3)


@pytest.fixture(scope="module")
def model(good, tmp_path_factory) -> OnnxWorldModel:
    path = tmp_path_factory.mktemp("good") / "good.onnx"
    path.write_bytes(good)
    return OnnxWorldModel(path, device="cpu")


def inputs(batch: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    start, goal = rng.standard_normal((2, batch, 8)).astype(np.float32)
    return start, goal, rng.uniform(1, 20, (batch, 1)).astype(np.float32)


# ---- what the file says ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("components", [1, 5])
def test_the_file_proposes_what_torch_proposes(components, tmp_path):
    source = tiny.source(components=components)
    file = OnnxWorldModel(tiny.file(tmp_path, components=components), device="cpu")
    report = parity.compare(source.model, file, 1e-5, batches=(1, 2, 300), proposals=source.proposals)
    assert report.passed, report.lines()
    assert {f"propose, {n} latents" for n in (1, 2, 300)} <= report.errors.keys()
    weights, means, spreads = file.propose(*inputs(4))
    assert (weights.shape, means.shape, spreads.shape) == ((4, components), (4, components, 10), (4, components, 10))
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    assert (spreads > 0).all()


def test_parity_notices_other_proposals(model):
    source = tiny.source(components=3)
    with torch.no_grad():
        source.proposals.means.bias += 1e-2
    assert not parity.compare(source.model, model, 1e-4, batches=(2,), proposals=source.proposals).passed


def test_a_proposal_does_not_depend_on_its_neighbours(model):
    start, goal, left = inputs(40)
    together = model.propose(start, goal, left)
    for row in range(40):
        alone = model.propose(start[row : row + 1], goal[row : row + 1], left[row : row + 1])
        for one, all_of_them in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0], all_of_them[row])


def test_a_file_without_proposals_is_what_it_was_before_there_were_any(good):
    plain = model_file.parse_file(tiny.content())
    assert model_file.parse_file(described(before_1_2(tiny.content()), format="1.0")).metadata.proposals == 0
    assert model_file.parse_file(before_1_2(good)).metadata.proposals == 3
    assert "proposals" not in json.loads(plain.model.metadata_props[0].value)
    assert {value.name for value in plain.model.graph.input} == {"pixels", "context", "past_actions", "actions"}
    assert "Log" not in {node.op_type for node in plain.model.graph.node}
    assert not {"start", "goal", "blocks_left"} & {value.name for value in plain.model.graph.input}


def test_the_rest_of_a_file_with_proposals_is_that_of_a_file_without(good, model, tmp_path):
    plain = OnnxWorldModel(tiny.file(tmp_path), device="cpu")
    assert model.proposes
    assert not plain.proposes
    pictures = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
    np.testing.assert_array_equal(model.encode(pictures), plain.encode(pictures))


def test_what_cannot_be_proposed_is_refused_in_one_sentence(model, tmp_path):
    start, goal, left = inputs(2)
    with pytest.raises(BadInput, match=r"proposes from \(B, 8\) twice and \(B, 1\), not \(2, 8\), \(1, 8\)"):
        model.propose(start, goal[:1], left)
    with pytest.raises(BadInput, match="more than 0"):
        model.propose(start, goal, 0 * left)
    with pytest.raises(BadInput, match="has no proposals"):
        OnnxWorldModel(tiny.file(tmp_path), device="cpu").propose(start, goal, left)


# ---- export ----------------------------------------------------------------------------------------------------------


def test_the_command_takes_the_runs_proposals_along(tmp_path):
    run, out = tiny.run_folder(tmp_path / "run", components=2), tmp_path / "tiny.onnx"
    command = [sys.executable, "-m", "export", "--run", run, "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert OnnxWorldModel(out, device="cpu").metadata.proposals == 2
    card = out.with_suffix(".md").read_text()
    assert "a mixture of 2 Gaussians" in card
    assert "propose, 300 latents" in card


def test_proposals_in_half_precision(tmp_path):
    run = tiny.run_folder(tmp_path / "run", components=2)
    export(Export(out=tmp_path / "half.onnx", run=run, fp16=True))
    weights, *_ = OnnxWorldModel(tmp_path / "half.onnx", device="cpu").propose(*inputs(3))
    assert weights.dtype == np.float32


def test_proposals_of_another_encoder_are_refused(tmp_path):
    run, other = (
        tiny.run_folder(tmp_path / name, components=2, seed=seed) for name, seed in (("run", 0), ("other", 1))
    )
    with pytest.raises(BadInput, match="belong to another encoder, of a run at step 7: delete them and train"):
        read_run(run, other / "proposals")


def test_proposals_that_are_not_there_or_damaged_are_refused(tmp_path):
    run = tiny.run_folder(tmp_path / "run", components=2)
    with pytest.raises(BadInput, match="nowhere"):
        read_run(run, tmp_path / "nowhere")
    (run / "proposals" / "checkpoint.safetensors").write_bytes(b"nonsense")
    with pytest.raises(BadInput, match="damaged or not a checkpoint"):
        read_run(run)


# ---- hostile files ---------------------------------------------------------------------------------------------------


def test_metadata_and_graph_must_agree_about_proposals(good):
    assert "input start is missing" in refusal(described(before_1_2(tiny.content()), proposals=3))
    assert "output proposals is missing" in refusal(described(good, proposals=4))
    for odd in (-1, 65, 1.5, "3", True, [3]):
        assert "proposals" in refusal(described(good, proposals=odd))
    assert "proposals, which format 1.0 does not know" in refusal(described(good, format="1.0"))


def test_without_the_metadata_the_entry_point_is_neither_checked_nor_offered(good):
    assert model_file.parse_file(described(good, proposals=None)).metadata.proposals == 0


def node_of(graph, kind):
    return next(node for node in graph.node if node.op_type == kind)


def change_operator(graph):
    node_of(graph, "Log").op_type = "Exp"


def give_log_an_attribute(graph):
    node_of(graph, "Log").attribute.append(helper.make_attribute("axis", 1))


def read_nothing(graph):
    node_of(graph, "Log").input[0] = "nothing"


def another_shape(graph):
    next(value for value in graph.input if value.name == "blocks_left").type.tensor_type.shape.dim[1].dim_value = 2


def another_type(graph):
    value = next(value for value in graph.output if value.name == "proposals")
    value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE


def no_node(graph):
    graph.node.remove(next(node for node in graph.node if "proposals" in node.output))


def wrong_result(graph):
    next(node for node in graph.node if "proposals" in node.output).input[0] = node_of(graph, "Log").output[0]


def infinite_weight(graph):
    name = next(node for node in graph.node if node.input[0] == node_of(graph, "Log").output[0]).input[1]
    weight = next(weight for weight in graph.initializer if weight.name == name)
    weight.CopyFrom(numpy_helper.from_array(np.full(tuple(weight.dims), np.inf, np.float32), name))


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (change_operator, "operator 'Exp', which world-model files do not use"),
        (give_log_an_attribute, "operator Log in it does not fit"),
        (read_nothing, "reads 'nothing'"),
        (another_shape, "input blocks_left is missing or not"),
        (another_type, "output proposals is missing or not"),
        (no_node, "nothing in it computes proposals"),
        (wrong_result, r"its proposals is float32 \(P, 1\) instead of"),
        (infinite_weight, "not finite numbers"),
    ],
)
def test_hostile_proposals_are_refused(good, edit, complaint):
    with pytest.raises(BadInput, match=complaint):
        model_file.parse_file(edited(good, lambda model: edit(model.graph)))
    assert refusal(edited(good, lambda model: edit(model.graph)))
