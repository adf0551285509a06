"""What the predictor is trained on: how much history, how long a window, and an encoder that stays as it is."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from envs.errors import BadInput
from tests.training.runs import TINY, go, same_run, tensors
from training.config import Config, Network
from training.objectives import make
from training.phases.learner import Learner
from training.phases.trainer import build

pytestmark = pytest.mark.usefixtures("quick")


def keeping_encoder(trained: Config, out: Path, **changes) -> Config:
    """A run that keeps the encoder of `trained`, with windows of six frames and a history of one."""
    network = Network(history=1)
    new = {"out": out, "encoder_from": trained.out, "network": network, "frames": 6, "open_loop": True}
    return dataclasses.replace(trained, **(new | changes))


def test_with_a_history_of_one_only_the_last_latent_counts():
    model = build("compact-transformer", 2, {"latent": 8, "history": 1, "width": 16, "heads": 2, "dropout": 0.0})
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    learner = Learner(model, make("none", latent=8))
    window = torch.randn(2, 3, 8)
    assert torch.equal(learner.stretches(window), window.reshape(6, 1, 8))
    latents, actions = torch.randn(2, 4, 8), torch.randn(2, 4, 10)
    loss = learner(latents, actions, torch.Generator())
    alone = [model.predict(latents[:, t : t + 1], actions[:, t : t + 1])[:, 0] - latents[:, t + 1] for t in range(3)]
    torch.testing.assert_close(loss.total, torch.stack(alone).square().mean())


def test_a_history_as_long_as_the_window_is_one_stretch():
    learner = Learner(build("compact-transformer", 2, {"latent": 8, "history": 3}), make("none", latent=8))
    window = torch.randn(2, 3, 8)
    assert torch.equal(learner.stretches(window), window)


def test_an_encoder_that_is_kept_does_not_change_and_the_predictor_does(trained, tmp_path):
    go(keeping_encoder(trained, tmp_path / "again"))
    before, after = tensors(trained.out), tensors(tmp_path / "again")
    for name, tensor in after.items():
        if name.startswith(("model.encoder.", "model.projector.", "model.action_mean")):
            assert torch.equal(tensor, before[name]), name
    assert not torch.equal(after["model.pred_proj.weight"], before["model.pred_proj.weight"])
    assert after["model.predictor.position"].shape[1] == 1
    config = json.loads((tmp_path / "again/config.json").read_text())
    assert config["encoder_steps"] == 6
    assert config["network"]["latent"] == TINY.latent


def test_such_a_run_resumes_bit_for_bit(trained, tmp_path):
    go(keeping_encoder(trained, tmp_path / "whole"))
    for steps in (2, 6):
        go(keeping_encoder(trained, tmp_path / "parts", steps=steps, schedule=6))
    one, other = (load_file(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    go(keeping_encoder(trained, tmp_path / "again"))
    same_run(tmp_path / "whole", tmp_path / "again")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"encoder_from": Path("nowhere")}, "nowhere"),
        ({"network": dataclasses.replace(TINY, hidden=64, history=1)}, "another shape"),
        ({"network": Network(history=6)}, "--history must lie from 1 to 5"),
        ({"frames": 1}, "--frames must be at least 2"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(trained, tmp_path, changes, complaint):
    with pytest.raises(BadInput, match=complaint):
        go(keeping_encoder(trained, tmp_path / "again", **changes))


def test_an_encoder_that_is_kept_twice_has_the_steps_that_made_it(trained, tmp_path):
    go(keeping_encoder(trained, tmp_path / "once", steps=2))
    markov = Network(history=1, predictor="markov")
    changes = {"steps": 3, "encoder_from": tmp_path / "once", "network": markov, "teacher_forcing": False}
    go(keeping_encoder(trained, tmp_path / "twice", **changes))

    assert json.loads((tmp_path / "twice" / "config.json").read_text())["encoder_steps"] == trained.steps


def test_training_on_nothing_is_refused_in_one_sentence(trained, tmp_path):
    with pytest.raises(BadInput, match="--no-teacher-forcing leaves nothing to learn from: add --open-loop"):
        keeping_encoder(trained, tmp_path / "none", open_loop=False, teacher_forcing=False).check()
