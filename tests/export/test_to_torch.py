"""The way back: a world-model file gives its weights to torch, and they do what the file does."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from agent.world_models import file as model_file
from agent.world_models.onnx import OnnxWorldModel
from agent.world_models.registry import PRETRAINED
from envs.errors import BadInput
from export import parity
from export.__main__ import Export, export, give_back
from export.package import package
from export.recover import recover
from export.source import Source, read_run
from export.to_torch import write_run
from tests import moving_dot, tiny
from training.config import Config, Network
from training.phases.trainer import Trainer

KINDS = [
    {"preset": "compact"},
    {"preset": "compact", "history": 1, "depth": 3, "residual": False, "components": 1},
    {"preset": "compact", "history": 2, "encoder": "strides", "activation": "silu", "components": 3},
    {"preset": "compact-transformer"},
    {"preset": "compact-transformer", "history": 1, "components": 3},
    {"preset": "compact-transformer", "history": 2, "latent": 12, "predictor": "markov"},
    {"preset": "compact-transformer", "history": 2, "latent": 12, "action_block": 3},
]
SHIPPED = sorted(PRETRAINED.glob("*/*.onnx"))


def tiny_file(folder: Path, **kind) -> Path:
    own = {name: kind.pop(name) for name in ("preset", "components", "dtype") if name in kind}
    return tiny.file(folder, **own, **tiny.NETWORK | kind)


def same_weights(one: bytes, other: bytes) -> None:
    """Copied weights are the same to the bit; those that are scaled, shifted or inverted are rounded once more."""
    before, after = (model_file.parse_file(content).model.graph.initializer for content in (one, other))
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(numpy_helper.to_array(new), numpy_helper.to_array(old), rtol=1e-6, atol=1e-6)


def exported(source: Source, horizon: int) -> bytes:
    return package(source, horizon, np.float32, {}, "MIT")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_comes_back_does_what_the_file_does_and_is_exported_as_the_same_weights(kind, tmp_path):
    path = tiny_file(tmp_path, **kind)
    write_run(path, tmp_path / "run")
    source, file = read_run(tmp_path / "run"), OnnxWorldModel(path, device="cpu")

    report = parity.compare(source.model, file, 1e-5, batches=(3,), proposals=source.proposals)
    assert report.passed, report.lines()
    assert any(name.startswith("propose") for name in report.errors) == ("components" in kind)
    same_weights(path.read_bytes(), exported(source, file.horizon))


def test_weights_that_the_file_holds_as_they_were_come_back_to_the_bit(tmp_path):
    write_run(tiny_file(tmp_path, preset="compact", components=3), tmp_path / "run")
    made, back = tiny.source("compact", components=3, **tiny.NETWORK), read_run(tmp_path / "run")
    for part in ("predictor", "pred_proj"):
        for name, tensor in getattr(made.model, part).state_dict().items():
            assert torch.equal(getattr(back.model, part).state_dict()[name], tensor), name
    for name, tensor in made.proposals.state_dict().items():
        torch.testing.assert_close(back.proposals.state_dict()[name], tensor, rtol=1e-6, atol=1e-6)
    assert torch.equal(back.model.action_mean, made.model.action_mean)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_shipped_file_comes_back_and_is_exported_as_the_same_weights(path):
    file = model_file.read(path)
    same_weights(path.read_bytes(), exported(recover(file), file.metadata.horizon))


def test_a_shipped_file_comes_back_as_a_run_that_does_what_it_does(tmp_path):
    path = PRETRAINED / "two-room" / "qqworld.onnx"
    write_run(path, tmp_path / "run")
    source, file = read_run(tmp_path / "run"), OnnxWorldModel(path, device="cpu")
    assert source.proposals is not None
    report = parity.compare(source.model, file, 1e-4, batches=(2,), proposals=source.proposals)
    assert report.passed, report.lines()


def test_half_precision_comes_back_as_far_as_the_file_has_it(tmp_path):
    path = tiny_file(tmp_path, dtype=np.float16, components=3)
    write_run(path, tmp_path / "run")
    source, file = read_run(tmp_path / "run"), OnnxWorldModel(path, device="cpu")
    assert parity.compare(source.model, file, 5e-2, batches=(3,), proposals=source.proposals).passed


def test_the_paper_network_comes_back(tmp_path):
    (tmp_path / "paper.onnx").write_bytes(exported(tiny.source("paper"), 2))
    write_run(tmp_path / "paper.onnx", tmp_path / "run")
    file = OnnxWorldModel(tmp_path / "paper.onnx", device="cpu")
    report = parity.compare(read_run(tmp_path / "run").model, file, 1e-4, batches=(2,))
    assert report.passed, report.lines()


def test_the_run_says_what_the_file_says_and_that_it_was_read_from_it(tmp_path):
    path = tiny_file(tmp_path, components=3)
    write_run(path, tmp_path / "run")
    source, file = read_run(tmp_path / "run"), model_file.read(path)
    made = tiny.source()
    for name in ("task", "look", "preset", "objective", "data", "steps", "seed"):
        assert getattr(source, name) == getattr(made, name)
    for folder in ("run", "run/proposals"):
        config = json.loads((tmp_path / folder / "config.json").read_text())
        assert config["from_file"]["sha256"] == file.sha256
        assert sorted(path.name for path in (tmp_path / folder).iterdir() if path.is_file()) == [
            "checkpoint.safetensors",
            "config.json",
        ]


def test_a_predictor_is_trained_on_an_encoder_that_comes_from_a_file(tmp_path):
    path, data = tmp_path / "dot.onnx", moving_dot.write(tmp_path / "dot.h5", episodes=8, side=16)
    source = dataclasses.replace(tiny.source("compact", **tiny.NETWORK), task="dot")
    path.write_bytes(exported(source, 4))
    write_run(path, tmp_path / "run")

    smaller = Network(width=16, history=1)
    config = Config("dot", data, tmp_path / "more", encoder_from=tmp_path / "run", network=smaller, steps=2, batch=8)
    Trainer(dataclasses.replace(config, threads=1)).run(bar=False)

    before, after = read_run(tmp_path / "run"), read_run(tmp_path / "more")
    assert after.model.encoder_fingerprint() == before.model.encoder_fingerprint()
    assert after.model.predictor.latent.weight.shape == (16, 8)
    assert after.steps == before.steps + 2


# ---- what is refused -------------------------------------------------------------------------------------------------


def changed(folder: Path, change=lambda graph: None, **metadata) -> Path:
    """A file with a correct checksum whose graph or metadata is not what the exporter wrote."""
    file = model_file.parse_file(tiny.content(components=2))
    del file.model.metadata_props[:]
    change(file.model.graph)
    path = folder / "changed.onnx"
    path.write_bytes(model_file.write(file.model, dataclasses.replace(file.metadata, **metadata)))
    return path


def add_weight(graph: onnx.GraphProto) -> None:
    graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "more"))


def double_pixels(graph: onnx.GraphProto) -> None:
    graph.initializer[0].raw_data = (2 * numpy_helper.to_array(graph.initializer[0])).tobytes()


def other_activation(graph: onnx.GraphProto) -> None:
    next(node for node in graph.node if node.op_type == "Gelu").op_type = "Relu"


NETWORK = tiny.source().network


@pytest.mark.parametrize(
    ("change", "metadata", "complaint"),
    [
        (add_weight, {}, "its graph is not the one that this program writes"),
        (other_activation, {}, "its graph is not the one that this program writes"),
        (double_pixels, {}, "some of its weights cannot be those of the network"),
        (None, {"network": NETWORK | {"depth": 3}}, "its graph is not the one that this program writes"),
        (None, {"network": NETWORK | {"history": 2}}, "a network of other sizes"),
        (None, {"network": NETWORK | {"width": 7}}, "cannot be built .*width 7 do not divide"),
        (None, {"network": {"nonsense": 1}}, "cannot be built .*no setting 'nonsense'"),
        (None, {"network": NETWORK | {"channels": "many"}}, "cannot be built"),
        (None, {"preset": "nonsense"}, "cannot be built .*unknown preset 'nonsense'"),
    ],
)
def test_a_file_of_another_network_is_refused_in_one_sentence(change, metadata, complaint, tmp_path):
    path = changed(tmp_path, *filter(None, [change]), **metadata)
    with pytest.raises(BadInput, match=f"the weights in .*changed.onnx cannot be given back: .*{complaint}"):
        write_run(path, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_damaged_file_is_refused_in_one_sentence(tmp_path):
    path = tiny_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(BadInput, match="checksum is missing or wrong"):
        write_run(path, tmp_path / "run")
    with pytest.raises(BadInput, match="cannot read the model"):
        write_run(tmp_path / "nowhere.onnx", tmp_path / "run")


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    path = tiny_file(tmp_path)
    (tmp_path / "empty").mkdir()
    write_run(path, tmp_path / "empty")
    before = (tmp_path / "empty/config.json").read_bytes()
    for taken in (tmp_path / "empty", path):
        with pytest.raises(BadInput, match="exists and is not an empty folder: give another --out"):
            write_run(path, taken)
    assert (tmp_path / "empty/config.json").read_bytes() == before
    with pytest.raises(BadInput, match="cannot write"):
        write_run(path, path / "below-a-file")


def test_the_command_goes_back_and_forth(tmp_path):
    path, run = tiny_file(tmp_path, components=2), tmp_path / "run"
    command = [sys.executable, "-m", "export", "--to-torch", path, "--out", run]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert f"--encoder-from {run}" in done.stdout
    assert OnnxWorldModel(export(Export(run=run)), device="cpu").metadata.proposals == 2


@pytest.mark.parametrize("settings", [{}, {"out": Path("run"), "run": Path("other")}])
def test_the_way_back_needs_a_folder_and_no_other_source(settings, tmp_path):
    path = tiny_file(tmp_path)
    with pytest.raises(BadInput, match="give --out, the run folder to write, and no other source"):
        give_back(path, Export(to_torch=path, **settings))
