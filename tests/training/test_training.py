"""The trainer: the same command resumes the same run, bad input is one sentence, a kill costs a few steps at most."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import models
from envs.dataset.reader import open_dataset
from envs.errors import BadInput, run
from tests.moving_dot import write
from training import train
from training.config import Config, Network, Regulariser
from training.data.windows import action_scale, split
from training.objectives import make
from training.phases.learner import Learner
from training.phases.trainer import Diverged, Trainer

torch.set_num_threads(1)  # the test workers already share the cores

TINY = Network(latent=16, image_size=32, channels=(8, 16), stem=4, hidden=32, width=32, depth=1, heads=2, mlp=32)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "dot.h5", episodes=12, steps=30, side=32)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Most tests look neither at the probes nor at the picture; `monkeypatch.undo()` brings both back."""
    monkeypatch.setattr("training.measures.probes.STEPS", 3)
    monkeypatch.setattr("training.measures.plots.draw", lambda lines, path, title: path.touch())


@pytest.fixture
def config(data, tmp_path) -> Config:
    return Config(
        env="dot",
        data=data,
        out=tmp_path / "run",
        steps=12,
        schedule=12,
        batch=8,
        network=TINY,
        regulariser=Regulariser(directions=16, queue=2),
        threads=1,
        log_every=2,
        eval_every=6,
        checkpoint_every=3,
    )


def arguments(config: Config) -> list[str]:
    """The command line that means `config`."""
    words = []
    for group in (config, config.network, config.regulariser):
        for field in dataclasses.fields(group):
            value = getattr(group, field.name)
            if field.name in ("network", "regulariser") or value is None or isinstance(value, bool):
                continue
            listed = value if isinstance(value, tuple) else [value]
            words += [f"--{field.name.replace('_', '-')}", *map(str, listed)]
    return words


def go(config: Config) -> Trainer:
    trainer = Trainer(config)
    trainer.run(bar=False)
    return trainer


def metrics(folder: Path) -> list[dict]:
    """Every line of the metrics without the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{part: value for part, value in line.items() if part != "speed"} for line in lines]


def same_run(one: Path, other: Path) -> None:
    first, second = load_file(one / "checkpoint.safetensors"), load_file(other / "checkpoint.safetensors")
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert metrics(one) == metrics(other)


# ---- resume ----------------------------------------------------------------------------------------------------------


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
    with pytest.raises(BadInput, match="is damaged: delete it"):
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


# ---- the run folder --------------------------------------------------------------------------------------------------


def test_the_run_folder_says_all_that_an_export_needs(config, monkeypatch):
    monkeypatch.undo()
    go(config)
    stored = json.loads((config.out / "config.json").read_text())
    assert (stored["env"], stored["objective"], stored["preset"], stored["seed"]) == ("dot", "qqworld", "compact", 0)
    assert stored["regulariser"]["reduction"] == "mean"
    assert stored["data"]["fingerprint"] == open_dataset(config.data).fingerprint
    model = models.build(stored["preset"], action_dim=stored["action_dim"], **stored["network"])
    tensors = load_file(config.out / "checkpoint.safetensors")
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    model.load_state_dict(weights)
    np.testing.assert_allclose(model.action_mean, stored["action_mean"], rtol=1e-6)
    assert (config.out / "training.png").read_bytes().startswith(b"\x89PNG")


def test_every_term_is_logged_with_and_without_its_weight(config):
    go(config)
    line = next(line["train"] for line in metrics(config.out) if "train" in line)
    assert line["qq_weighted"] == pytest.approx(3.5 * line["qq"])
    assert line["loss"] == pytest.approx(line["prediction"] + line["qq_weighted"])


def test_held_out_episodes_are_measured_at_the_start_and_every_so_many_steps(config):
    go(config)
    measured = [line for line in metrics(config.out) if "held_out" in line]
    assert [line["step"] for line in measured] == [0, 6, 12]
    wanted = {"error_1", "error_5", "error_5_to_copy", "change_1", "qq_rmse", "ks", "ep", "tail_rate", "effective_rank"}
    assert wanted <= measured[-1]["held_out"].keys()
    assert {"r2_linear/dot_x", "r2_mlp/dot_y", "std_min"} <= measured[-1]["held_out"].keys()


def test_numbers_go_to_tensorboard_where_it_is_installed(config, monkeypatch):
    written = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            assert folder == str(config.out)

        def add_scalar(self, *scalar):
            written.append(scalar)

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=SummaryWriter))
    go(dataclasses.replace(config, steps=2))
    assert {name for name, _, step in written if step == 2} >= {"train/loss", "held_out/error_5"}


# ---- learning --------------------------------------------------------------------------------------------------------


def test_actions_are_scaled_with_the_training_episodes_alone(config):
    trainer = Trainer(config)
    mean, std = action_scale(trainer.data, split(trainer.data)[0])
    np.testing.assert_array_equal(trainer.learner.model.action_mean, mean)
    np.testing.assert_array_equal(trainer.learner.model.action_std, std)
    assert not np.array_equal(mean, action_scale(trainer.data, np.arange(12))[0])


def test_the_learning_rate_warms_up_and_follows_a_cosine_whose_length_is_not_the_stop_step(config):
    trainer = Trainer(dataclasses.replace(config, steps=10, schedule=100, warmup=0.1, lr=1.0))
    rates = [trainer.lr(step) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([step / 10 for step in range(1, 11)])
    assert rates[54] == pytest.approx(0.5, abs=0.01)
    assert rates[99] == pytest.approx(0)


@pytest.mark.parametrize(("open_loop", "forcing"), [(False, True), (True, True), (True, False)])
def test_the_learner_predicts_the_next_latents_from_the_true_ones_and_open_loop_from_the_first(open_loop, forcing):
    torch.manual_seed(0)
    model = models.build(
        "compact", action_dim=2, **{k: v for k, v in dataclasses.asdict(TINY).items() if v is not None}
    )
    torch.nn.init.normal_(model.pred_proj.weight, std=0.1)  # it begins with "nothing changes"
    learner = Learner(model, make("none", latent=16), open_loop, forcing).eval()
    pixels, actions = torch.randint(0, 255, (3, 4, 32, 32, 3), dtype=torch.uint8), torch.randn(3, 4, 10)
    latents = model.encode(pixels)
    predicted = model.predict(latents[:, :3], actions[:, :3])
    error = (predicted - latents[:, 1:]).square().mean()
    if open_loop:
        rolled = model.rollout(latents[:, :1], actions[:, :0], actions[:, :3])
        assert not torch.equal(rolled, predicted)
        of_rolled = (rolled - latents[:, 1:]).square().mean()
        error = (error + of_rolled) / 2 if forcing else of_rolled
    loss = learner(pixels, actions, torch.Generator())
    torch.testing.assert_close(loss.total, error)


def test_every_objective_trains(config):
    for name in ("lewm", "vicreg", "pldm", "visreg", "sub-jepa", "sd-jepa", "smwm", "none"):
        settings = Regulariser() if name in ("vicreg", "pldm", "smwm", "none") else Regulariser(directions=32)
        if name == "sub-jepa":
            continue  # its 32 subspaces do not fit in the tiny latent
        trained = go(
            dataclasses.replace(config, objective=name, regulariser=settings, steps=2, out=config.out.parent / name)
        )
        assert trained.step == 2


def test_without_a_regulariser_the_latents_collapse_and_the_alarm_says_what_to_do(config):
    said = []
    alone = dataclasses.replace(
        config, objective="none", regulariser=Regulariser(), steps=150, schedule=150, eval_every=150, lr=3e-3
    )
    measured = Trainer(alone, said.append).run(bar=False)
    assert measured["std_mean"] < 0.05
    assert "raise the regulariser's --weight" in said[0]


# ---- when it goes wrong ----------------------------------------------------------------------------------------------


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
