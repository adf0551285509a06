"""The proposal trainer resumes bit for bit, leaves the world model alone and refuses what does not fit."""

import dataclasses
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from envs.dataset.reader import open_dataset
from envs.errors import BadInput
from models.run_folder import read_run
from tests import tiny
from tests.moving_dot import write
from tests.training.runs import metrics, same_run
from training import train
from training.data import latents as cached
from training.data.latents import latents_of
from training.data.windows import split
from training.phases.proposal_trainer import ProposalConfig, ProposalTrainer


def run_of(folder: Path, task: str = "dot", **settings) -> Path:
    """A run folder with a tiny network for `task`."""
    config = tiny.run_folder(folder, **settings) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"env": task}))
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "dot.h5", episodes=12, steps=30, side=16)


@pytest.fixture
def config(data, tmp_path) -> ProposalConfig:
    run = run_of(tmp_path / "run")
    small = {"width": 16, "depth": 2, "components": 2, "reach": 20, "steps": 12, "batch": 16}
    return ProposalConfig(run=run, data=data, threads=1, log_every=2, eval_every=6, checkpoint_every=5, **small)


@pytest.mark.parametrize("kind", ["mixture", "mean"])
def test_proposals_stopped_and_resumed_are_the_same_bit_for_bit(config, tmp_path, kind):
    config = dataclasses.replace(config, kind=kind)
    whole = dataclasses.replace(config, out=tmp_path / "whole")
    ProposalTrainer(whole, bar=False).run()
    for stop in (4, 7):
        trainer = ProposalTrainer(config, bar=False)
        update = trainer.update
        trainer.update = lambda t=trainer, u=update, s=stop: (t.stop() if t.step == s - 1 else None, u())[1]
        trainer.run()
        assert trainer.step == stop
    ProposalTrainer(config, bar=False).run()
    same_run(whole.out, config.run / "proposals")


def test_the_world_model_is_left_alone(config):
    before = (config.run / "checkpoint.safetensors").read_bytes()
    ProposalTrainer(config, bar=False).run()
    assert (config.run / "checkpoint.safetensors").read_bytes() == before


def test_frames_are_encoded_once_until_the_encoder_or_the_data_change(config, tmp_path, monkeypatch):
    encoded = []
    monkeypatch.setattr(cached, "encode", lambda model, pixels: encoded.append(len(pixels)) or real(model, pixels))
    real, frames = sys.modules["training.measures.held_out"].encode, open_dataset(config.data)
    model = read_run(config.run).model

    first = latents_of(model, frames, config.run, bar=False)
    again = latents_of(model, frames, config.run, bar=False)
    assert sum(encoded) == len(frames.pixels)
    torch.testing.assert_close(first, again, rtol=0, atol=0)

    with torch.no_grad():
        model.projector[0].bias += 1
    other = latents_of(model, frames, config.run, bar=False)
    assert sum(encoded) == 2 * len(frames.pixels)
    assert not torch.equal(first, other)

    more = open_dataset(write(tmp_path / "more.h5", episodes=3, side=16, seed=1))
    assert len(latents_of(model, more, config.run, bar=False)) == len(more.pixels)
    (config.run / cached.CACHE).write_bytes(b"nonsense")
    torch.testing.assert_close(latents_of(model, frames, config.run, bar=False), other)


def test_the_command_trains_and_says_how_it_went(config, capfd):
    small = "--kind mean --width 8 --depth 1 --steps 3 --batch 8 --threads 1"
    line = f"--env dot --phases proposals --out {config.run} --data {config.data} {small}"
    assert train.main(shlex.split(line)) == 0
    said = capfd.readouterr().err
    assert "finished at step 3: error_1" in said
    stored = json.loads((config.run / "proposals" / "config.json").read_text())
    assert stored["network"]["components"] == 1
    assert stored["world_model"]["step"] == 7
    assert {"held_out", "train"} <= {part for line in metrics(config.run / "proposals") for part in line}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"run": Path("nowhere")}, "nowhere is not a run folder"),
        ({"data": Path("nowhere.h5")}, "there is no data file nowhere.h5"),
        ({"batch": 10_000}, "fewer than one batch of 10000"),
        ({"dropout": 1.0}, "--dropout in"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(config, change, sentence):
    with pytest.raises(BadInput, match=sentence) as refused:
        ProposalTrainer(dataclasses.replace(config, **change), bar=False)
    assert "\n" not in str(refused.value)


def test_data_of_another_task_is_refused(config, tmp_path):
    other = dataclasses.replace(config, run=run_of(tmp_path / "other", task="pusht"))
    with pytest.raises(BadInput, match="holds data of dot, not of pusht"):
        ProposalTrainer(other, bar=False)


def test_data_of_another_size_is_refused(config, tmp_path):
    other = write(tmp_path / "large.h5", episodes=3, side=32)
    with pytest.raises(BadInput, match="pictures of 32 px"):
        ProposalTrainer(dataclasses.replace(config, data=other), bar=False)


def test_proposals_of_another_world_model_are_not_continued(config):
    ProposalTrainer(config, bar=False).run()
    run_of(config.run, seed=1)
    with pytest.raises(BadInput, match=r"other settings \(world_model.encoder"):
        ProposalTrainer(config, bar=False)


def test_training_and_held_out_episodes_are_the_trainers(config):
    trainer = ProposalTrainer(config, bar=False)
    train, held = split(open_dataset(config.data))
    assert set(trainer.hindsight.windows.episode) == set(train)
    assert set(trainer.held_out.windows.episode) == set(held)


def test_bad_input_is_status_2(tmp_path):
    words = ["--env", "dot", "--phases", "proposals", "--out", str(tmp_path), "--data", "nowhere.h5"]
    done = subprocess.run([sys.executable, "-m", "training.train", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
