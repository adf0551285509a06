"""Rollouts of a single block: an entry point that export writes, and that older files get when they are read."""

import json

import numpy as np
import onnx
import pytest

from agent.world_models import file as model_file
from agent.world_models.file import graph
from agent.world_models.onnx import OnnxWorldModel
from export import parity
from tests import tiny
from tests.agent.world_models.edits import before_1_2, described, edited, refusal

LENGTHS = (1, 2, 3)


@pytest.fixture(scope="module")
def good() -> bytes:
    return tiny.content()


@pytest.fixture(scope="module")
def old(good) -> bytes:
    return before_1_2(good)


@pytest.fixture
def load(tmp_path):
    """Opens a file with these bytes."""

    def opened(content: bytes) -> OnnxWorldModel:
        (tmp_path / "model.onnx").write_bytes(content)
        return OnnxWorldModel(tmp_path / "model.onnx", device="cpu", threads=1)

    return opened


def plans(count: int, length: int, steps: int):
    """Context, past actions and actions for the tiny model."""
    rng = np.random.default_rng(length)
    shapes = (1, length, 8), (1, length - 1, 10), (count, steps, 10)
    return tuple(rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)


def node_of(model: onnx.ModelProto, output: str) -> onnx.NodeProto:
    return next(node for node in model.graph.node if output in node.output)


# ---- at work ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["good", "old"])
def test_a_single_block_is_computed_alone(which, load, request):
    model = load(request.getfixturevalue(which))
    for length in LENGTHS:
        context, past, actions = plans(5, length, 4)
        alone = model.rollout(context, past, actions[:, :1])
        np.testing.assert_allclose(alone, model.rollout(context, past, actions)[:, :1], atol=1e-6)
        assert f"next_latent_{length}" in model._entries
        short, whole = (
            graph.entry_point(model._file.model, output) for output in (f"next_latent_{length}", f"latents_{length}")
        )
        assert len(short.graph.node) < len(whole.graph.node) / 2


def test_a_file_says_that_it_has_them_and_hardly_grows(good, old):
    now, before = map(model_file.parse_file, (good, old))
    assert (now.metadata.one_block, now.metadata.format) == (True, "1.2")
    assert (before.metadata.one_block, before.metadata.format) == (False, "1.1")
    assert "one_block" not in json.loads(before.model.metadata_props[0].value)
    assert len(now.model.graph.initializer) == len(before.model.graph.initializer)
    assert len(good) < len(old) + 500


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_an_older_file_computes_the_same_bits(dtype, load):
    good = tiny.content(dtype=dtype)
    now, before = load(good), load(before_1_2(good))
    for length in LENGTHS:
        for steps in (1, 2, 4):
            inputs = plans(20, length, steps)
            np.testing.assert_array_equal(now.rollout(*inputs), before.rollout(*inputs))


def test_an_older_file_that_joins_its_latents_otherwise_computes_all_blocks_and_cuts(old, load):
    model = load(edited(old, lambda model: setattr(node_of(model, "latents_1"), "op_type", "Relu")))
    context, past, actions = plans(5, 1, 4)
    alone = model.rollout(context, past, actions[:, :1])
    np.testing.assert_array_equal(alone, model.rollout(context, past, actions)[:, :1])
    assert "next_latent_1" not in model._file.work
    assert "next_latent_2" in model._file.work


def test_an_older_file_that_joins_longer_pieces_computes_all_blocks_and_cuts(old, load):
    def join_twice(model):
        joined = node_of(model, node_of(model, "latents_1").input[0])
        pair = onnx.helper.make_node("Concat", joined.input[:2], ["pair"], axis=1)
        rest = joined.input[2:]
        del joined.input[:]
        joined.input.extend(["pair", *rest])
        model.graph.node.insert(list(model.graph.node).index(joined), pair)

    model, plain = load(edited(old, join_twice)), load(old)
    assert "next_latent_1" not in model._file.work
    inputs = plans(5, 1, 1)
    np.testing.assert_allclose(model.rollout(*inputs), plain.rollout(*inputs), atol=1e-6)


def test_parity_notices_another_block(good, load):
    def give_the_second(model):
        joined = node_of(model, node_of(model, "latents_1").input[0])
        node_of(model, "next_latent_1").input[0] = joined.input[1]

    right, wrong = (
        parity.compare(tiny.source().model, load(content), 1e-4, batches=(2,))
        for content in (good, edited(good, give_the_second))
    )
    assert right.passed
    assert {name for name, error in wrong.errors.items() if error > 1e-4} == {
        f"one block from 1, 2 candidates, {contexts} contexts" for contexts in (1, 2)
    }


# ---- hostile files ---------------------------------------------------------------------------------------------------


def test_metadata_and_graph_must_agree(good, old):
    assert "output next_latent_1 is missing" in refusal(described(old, one_block=True, format="1.2"))
    assert "one_block, which format 1.1 does not know" in refusal(described(good, format="1.1"))
    for odd in (1, "yes", [True], 0.5):
        assert "one_block" in refusal(described(good, one_block=odd))


def test_without_the_metadata_the_entry_points_are_neither_checked_nor_offered(good):
    plain = model_file.parse_file(described(good, one_block=None))
    assert not any(output.startswith("next_latent") for output in plain.work)


def change_operator(model):
    node_of(model, "next_latent_2").op_type = "Exp"


def read_nothing(model):
    node_of(model, "next_latent_2").input[0] = "nothing"


def give_all_blocks(model):
    node_of(model, "next_latent_2").input[0] = node_of(model, "latents_2").input[0]


def another_shape(model):
    value = next(value for value in model.graph.output if value.name == "next_latent_2")
    value.type.tensor_type.shape.dim[1].dim_value = 2


def no_node(model):
    model.graph.node.remove(node_of(model, "next_latent_2"))


def no_output(model):
    model.graph.output.remove(next(value for value in model.graph.output if value.name == "next_latent_2"))


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (change_operator, "operator 'Exp', which world-model files do not use"),
        (read_nothing, "reads 'nothing'"),
        (give_all_blocks, "its next_latent_2 is float32 (N, 4, 8) instead of float32 (N, 1, 8)"),
        (another_shape, "output next_latent_2 is missing or not"),
        (no_node, "nothing in it computes next_latent_2"),
        (no_output, "output next_latent_2 is missing"),
    ],
)
def test_hostile_ones_are_refused(good, edit, complaint):
    assert complaint in refusal(edited(good, edit))


def test_an_operator_that_only_the_cut_would_reach_is_refused_too(old):
    def shadow(model):
        """Give the first latent a second time, after all that was checked, by an operator that files do not use."""
        first = node_of(model, node_of(model, "latents_1").input[0]).input[0]
        model.graph.node.append(onnx.helper.make_node("Exp", ["context"], [first]))

    assert "two things in it are called" in refusal(edited(old, shadow))
