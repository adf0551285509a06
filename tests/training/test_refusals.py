"""What goes wrong is said in one sentence, and nothing that was there is lost."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from envs.errors import BadInput, run
from tests.moving_dot import write
from tests.training.runs import TINY, arguments, go
from training import train
from training.config import Regulariser
from training.phases.trainer import Diverged, Trainer

pytestmark = pytest.mark.usefixtures("quick")


def test_a_loss_that_is_no_number_stops_with_the_episodes_and_overwrites_nothing(config, monkeypatch):
    go(dataclasses.replace(config, steps=4))
    before = (config.out / "checkpoint.safetensors").read_bytes()
    trainer = Trainer(config)
    monkeypatch.setattr(trainer.learner.objective, "terms", lambda latents, *_: {"qq": latents.sum() * math.nan})
    with pytest.raises(Diverged, match=r"not finite at step 5, on episodes \d+.*checkpoint.safetensors of step 4"):
        trainer.run(bar=False)
    assert (config.out / "checkpoint.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"objective": "sigreg"}, "unknown objective 'sigreg'"),
        ({"preset": "huge"}, "unknown preset 'huge'"),
        ({"data": Path("nowhere.h5")}, "there is no data file nowhere.h5"),
        ({"env": "pusht"}, "holds data of dot, not of pusht"),
        ({"network": dataclasses.replace(TINY, image_size=64)}, "has pictures of 32 px"),
        ({"network": dataclasses.replace(TINY, heads=3)}, "do not divide"),
        ({"objective": "lewm"}, "lewm has no setting 'queue'"),
        ({"batch": 1}, "--batch must be at least 2"),
        ({"batch": 5000}, "lower --batch"),
        ({"steps": 0}, "--steps must be at least 1"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"device": "cuda"}, "no CUDA device"),
        ({"out": Path(__file__).parent}, "is not empty and not a run folder"),
        ({"out": Path(__file__) / "run"}, "cannot make the run folder"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(config, wrong, complaint, capsys):
    if wrong.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(SystemExit) as exit:
        run(lambda: train.main(arguments(dataclasses.replace(config, **wrong))))
    said = capsys.readouterr().err
    assert exit.value.code == 2
    assert complaint in said
    assert said.count("\n") == 1


def test_episodes_that_are_too_short_are_refused(config, tmp_path):
    short = write(tmp_path / "short.h5", steps=10, side=32)
    with pytest.raises(BadInput, match="a window of 4 frames needs 16 rows, and the longest has 11"):
        Trainer(dataclasses.replace(config, data=short))


def test_windows_of_two_frames_need_less(config, tmp_path):
    short = write(tmp_path / "short.h5", steps=10, side=32)
    smwm = dataclasses.replace(config, data=short, objective="smwm", regulariser=Regulariser(), steps=2)
    assert go(smwm).learner.model.history == 1


def test_the_command_works_as_documented(config):
    config = dataclasses.replace(config, steps=4)
    done = subprocess.run(
        [sys.executable, "-m", "training.train", *arguments(config)],
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert "12 episodes" in done.stderr
    assert "finished at step 4" in done.stderr
