"""The same command resumes the same run bit for bit, and a kill costs a few steps at most."""

import dataclasses
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from envs.errors import BadInput
from tests.moving_dot import write
from tests.training.runs import arguments, go, metrics, same_run
from training.config import Regulariser
from training.phases.trainer import Trainer

pytestmark = pytest.mark.usefixtures("quick")


def test_a_run_stopped_and_resumed_is_the_same_run_bit_for_bit(config, tmp_path):
    whole = go(dataclasses.replace(config, out=tmp_path / "whole"))
    for steps in (4, 7, 12):
        go(dataclasses.replace(config, steps=steps))
    assert whole.step == 12
    first, second = (load_file(folder / "checkpoint.safetensors") for folder in (whole.config.out, config.out))
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert any(name.startswith("optimiser.") for name in first)
    assert int(first["objective.pushed"]) == 12


def test_a_run_killed_again_and_again_ends_as_the_same_run(config, tmp_path, monkeypatch):
    monkeypatch.undo()
    config = dataclasses.replace(config, steps=40, schedule=40, eval_every=20)
    go(dataclasses.replace(config, out=tmp_path / "whole"))
    command = [sys.executable, "-m", "training.train", *arguments(config)]
    checkpoint = config.out / "checkpoint.safetensors"
    for _ in range(2):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before:
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
        process.wait()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    same_run(tmp_path / "whole", config.out)


def test_a_terminated_run_saves_where_it_is_and_says_how_to_go_on(config):
    config = dataclasses.replace(config, steps=100_000, schedule=100_000, checkpoint_every=100_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "training.train", *arguments(config)], stderr=subprocess.PIPE, text=True
    )
    while not (config.out / "metrics.jsonl").exists() or len(metrics(config.out)) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again" in said
    assert Trainer(config).step > 0


def test_metrics_of_steps_that_are_done_again_are_dropped(config):
    go(dataclasses.replace(config, steps=6))
    with open(config.out / "metrics.jsonl", "a") as file:
        file.write('{"step": 8, "train": {}}\n{"step": 10, "tra')  # logged after the checkpoint, then killed
    go(config)
    steps = [line["step"] for line in metrics(config.out) if "train" in line]
    assert steps == [2, 4, 6, 8, 10, 12]


def test_a_finished_run_is_left_alone(config):
    go(config)
    before = (config.out / "checkpoint.safetensors").stat().st_mtime_ns
    go(config)
    assert (config.out / "checkpoint.safetensors").stat().st_mtime_ns == before


def test_a_changed_setting_is_refused_with_the_difference(config):
    go(dataclasses.replace(config, steps=3))
    changed = dataclasses.replace(config, lr=0.5, batch=4, regulariser=Regulariser(directions=16, queue=1))
    with pytest.raises(BadInput, match=r"batch is 8 there, not 4; lr is 0.001 there, not 0.5; regulariser.queue is 2"):
        Trainer(changed)


def test_other_data_is_refused(config, tmp_path):
    go(dataclasses.replace(config, steps=3))
    other = write(tmp_path / "other.h5", side=32, seed=1)
    with pytest.raises(BadInput, match=r"data\.fingerprint is"):
        Trainer(dataclasses.replace(config, data=other))


def test_what_does_not_change_the_result_may_change(config, tmp_path):
    go(dataclasses.replace(config, steps=3))
    moved = tmp_path / "moved.h5"
    moved.write_bytes(config.data.read_bytes())
    assert go(dataclasses.replace(config, data=moved, device="cpu", checkpoint_every=5)).step == 12


def test_two_processes_cannot_train_in_one_folder(config):
    held = Trainer(config)
    with pytest.raises(BadInput, match="another process trains"):
        Trainer(config)
    held.close()
    Trainer(config).close()


def test_a_damaged_checkpoint_is_refused(config):
    go(dataclasses.replace(config, steps=3))
    path = config.out / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BadInput, match=r"is damaged or not a checkpoint of this trainer .*: delete it to start again"):
        Trainer(config)


def test_a_failed_write_leaves_the_last_checkpoint(config, monkeypatch):
    trainer = go(dataclasses.replace(config, steps=3))
    before = (config.out / "checkpoint.safetensors").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(BadInput, match="No space left on device"):
        trainer.save()
    assert (config.out / "checkpoint.safetensors").read_bytes() == before
