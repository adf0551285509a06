"""The phases of a world model: one command trains them in turn, and stopped in any of them it goes on."""

import dataclasses
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from agent.world_models.onnx import OnnxWorldModel
from envs import recipes
from envs.errors import BadInput
from export.__main__ import Export, export
from models.run_folder import read_config
from tests.moving_dot import write
from tests.training.runs import TINY
from training import train
from training.measures import plots, probes
from training.phases.proposal_trainer import ProposalTrainer
from training.phases.trainer import Trainer

RECIPE = """
[data]
[encoder]
image_size = 32
latent = 16
channels = [8, 16]
hidden = 32
width = 32
depth = 1
strength = 10
directions = 16
batch = 8
steps = 40
checkpoint_every = 3
[predictor]
width = 24
depth = 2
history = 1
frames = 3
open_loop = true
directions = 16
batch = 16
steps = 50
checkpoint_every = 3
[proposals]
width = 16
depth = 1
components = 2
batch = 8
steps = 60
checkpoint_every = 3
[planner]
name = "guided"
samples = 16
[measure]
"""
FOLDERS = {"encoder": "encoder", "predictor": "", "proposals": "proposals"}
"""Where each phase leaves its files in a run folder."""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with a dataset and a recipe of small networks."""
    folder = tmp_path_factory.mktemp("home")
    write(folder / "dot.h5", side=32, task="two-room")
    (folder / "two-room.toml").write_text(RECIPE)
    return folder


def make_small(home: Path, setattr: Callable[..., None] = setattr) -> None:
    """Have the recipe read from `home`, and measure and draw as little as possible."""
    setattr(recipes, "FOLDER", home)
    setattr(probes, "STEPS", 3)
    setattr(plots, "draw", lambda lines, path, title: path.touch())


@pytest.fixture(autouse=True)
def small(home, monkeypatch):
    make_small(home, monkeypatch.setattr)


def words(home: Path, out: Path, flags: str = "") -> list[str]:
    """The command line that trains into `out`."""
    return f"--env two-room --data {home / 'dot.h5'} --out {out} --threads 1 {flags}".split()


@pytest.fixture(scope="module")
def whole(home) -> Path:
    """The run folder of a command that nothing disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(home, patch.setattr)
        assert train.main(words(home, home / "whole")) == 0
    return home / "whole"


def assert_same_weights(one: Path, other: Path) -> None:
    """Every phase ended with the same tensors, bit for bit."""
    for folder in FOLDERS.values():
        first, second = (load_file(run / folder / "checkpoint.safetensors") for run in (one, other))
        assert first.keys() == second.keys()
        assert all(tensor.numpy().tobytes() == second[name].numpy().tobytes() for name, tensor in first.items())


# ---- what is trained -------------------------------------------------------------------------------------------------


def test_the_phases_follow_one_another_and_the_run_folder_says_what_was_used(whole):
    used = {phase: read_config(whole / folder) for phase, folder in FOLDERS.items()}

    assert {phase: config["steps"] for phase, config in used.items()} == {
        "encoder": 40,
        "predictor": 50,
        "proposals": 60,
    }
    assert (used["encoder"]["network"]["width"], used["predictor"]["network"]["width"]) == (32, 24)
    assert used["encoder"]["regulariser"]["weight"] == 10
    assert used["predictor"]["encoder_from"] == str(whole / "encoder")
    assert used["predictor"]["encoder_steps"] == 40
    assert used["proposals"]["network"]["components"] == 2
    assert all((whole / folder / "checkpoint.safetensors").exists() for folder in FOLDERS.values())


def test_export_makes_one_file_of_them_with_the_recipes_planner(whole):
    out = export(Export(run=whole))

    assert out == whole / "model.onnx"
    file = OnnxWorldModel(out, device="cpu")
    assert (file.task, file.metadata.steps, file.metadata.proposals) == ("two-room", 90, 2)
    assert file.planner == {"name": "guided", "samples": 16}
    assert out.with_suffix(".md").exists()


def test_the_display_says_which_phase_it_is_and_what_comes_after(home, tmp_path, capfd, monkeypatch):
    (tmp_path / "two-room.toml").write_text(RECIPE.replace("[proposals]", "[proposals]\nminutes = 4"))
    monkeypatch.setattr(recipes, "FOLDER", tmp_path)

    assert train.main(words(home, tmp_path / "run", "--steps 1")) == 0

    said = capfd.readouterr().err
    for number, phase in enumerate(FOLDERS, start=1):
        assert f"{phase}, {number} of 3: " in said
    assert said.count("afterwards: proposals, about 4 min\n") == 2


def test_a_flag_overrides_the_recipe_in_every_phase_that_has_it(home, tmp_path):
    assert train.main(words(home, tmp_path / "run", "--steps 2 --lr 0.5 --components 3")) == 0

    used = [read_config(tmp_path / "run" / folder) for folder in FOLDERS.values()]
    assert [(config["steps"], config["lr"]) for config in used] == [(2, 0.5)] * 3
    assert [config["batch"] for config in used] == [8, 16, 8]
    assert used[2]["network"]["components"] == 3


def test_one_phase_can_be_trained_alone_and_the_whole_command_goes_on_from_it(home, whole, tmp_path):
    out = tmp_path / "run"
    assert train.main(words(home, out, "--phases encoder")) == 0
    assert [path.name for path in out.iterdir()] == ["encoder"]
    trained = (out / "encoder" / "checkpoint.safetensors").stat().st_mtime_ns

    assert train.main(words(home, out)) == 0

    assert (out / "encoder" / "checkpoint.safetensors").stat().st_mtime_ns == trained
    assert_same_weights(whole, out)


@pytest.mark.parametrize(
    ("phase", "sentence"),
    [("predictor", "has no trained encoder: train it first, or name one by --encoder-from"),
     ("proposals", "is not a run folder")],
)  # fmt: skip
def test_a_phase_without_the_one_before_is_refused_in_one_sentence(home, tmp_path, phase, sentence):
    with pytest.raises(BadInput, match=sentence) as refused:
        train.main(words(home, tmp_path / "run", f"--phases {phase}"))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_network_that_is_not_the_recipes_is_trained_jointly_in_the_run_folder_itself(home, tmp_path):
    flags = "--preset compact-transformer --steps 2 --batch 8 --directions 16 "
    for name, value in dataclasses.asdict(TINY).items():
        listed = value if isinstance(value, tuple) else [value]
        flags += "" if value is None else f"--{name.replace('_', '-')} {' '.join(map(str, listed))} "
    assert train.main(words(home, tmp_path / "run", flags)) == 0

    config = read_config(tmp_path / "run")
    assert (config["preset"], config["steps"], config["encoder_from"]) == ("compact-transformer", 2, None)
    assert not [path for path in (tmp_path / "run").iterdir() if path.is_dir()]


# ---- what is stopped goes on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", FOLDERS)
@pytest.mark.parametrize("step", [7, None])
def test_terminated_in_any_phase_the_same_command_goes_on_bit_for_bit(home, whole, tmp_path, monkeypatch, phase, step):
    out, kind = tmp_path / "run", ProposalTrainer if phase == "proposals" else Trainer
    name = "save" if step is None else "update"  # None: after the last step, before the next phase begins
    method, number = getattr(kind, name), list(FOLDERS).index(phase) + 1

    def told_to_stop(trainer, *given):
        done = method(trainer, *given)
        if trainer.title == f"{phase}, {number} of 3" and trainer.step == (step or trainer.config.steps):
            os.kill(os.getpid(), signal.SIGTERM)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(kind, name, told_to_stop)
        assert train.main(words(home, out)) == 130
    later = list(FOLDERS.values())[number:]
    assert not any((out / folder / "config.json").exists() for folder in later)

    assert train.main(words(home, out)) == 0
    assert_same_weights(whole, out)


def test_control_c_between_two_phases_ends_the_command(home, whole, tmp_path, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    with monkeypatch.context() as patch:
        patch.setattr("training.phases.trainer.latents_of", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            train.main(words(home, tmp_path / "run"))
    signal.signal(signal.SIGINT, before)

    assert train.main(words(home, tmp_path / "run")) == 0
    assert_same_weights(whole, tmp_path / "run")


def train_in_child(home: Path, out: Path) -> None:
    make_small(home)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (the child ends with it)
    sys.exit(train.main(words(home, out)))


def test_killed_in_every_phase_the_same_command_goes_on_bit_for_bit(home, whole, tmp_path):
    children = multiprocessing.get_context("forkserver")  # children that need not import torch again
    children.set_forkserver_preload([__name__])
    for folder in FOLDERS.values():
        checkpoint = tmp_path / "run" / folder / "checkpoint.safetensors"
        child = children.Process(target=train_in_child, args=(home, tmp_path / "run"))
        child.start()
        while not checkpoint.exists():
            assert child.is_alive()
            time.sleep(0.001)
        child.kill()
        child.join()

    assert train.main(words(home, tmp_path / "run")) == 0
    assert_same_weights(whole, tmp_path / "run")


@pytest.mark.parametrize("left", [".lock", "config.json.tmp"])
def test_what_a_kill_leaves_before_the_first_line_is_no_obstacle(home, tmp_path, left):
    (tmp_path / "run" / "encoder").mkdir(parents=True)
    (tmp_path / "run" / "encoder" / left).touch()
    assert train.main(words(home, tmp_path / "run", "--phases encoder --steps 1")) == 0
