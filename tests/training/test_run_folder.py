"""The run folder says all that an export needs, and logs what was measured."""

import dataclasses
import json
import sys
import types

import h5py
import numpy as np
import pytest
from safetensors.torch import load_file

import models
from envs.dataset.reader import open_dataset
from models.run_folder import read_config, read_run
from tests.training.runs import go, metrics, same_run

pytestmark = pytest.mark.usefixtures("quick")


def test_the_run_folder_says_all_that_an_export_needs(config, monkeypatch):
    monkeypatch.undo()
    go(config)
    stored = json.loads((config.out / "config.json").read_text())
    assert (stored["env"], stored["objective"], stored["seed"]) == ("dot", "qqworld", 0)
    assert stored["preset"] == "compact-transformer"
    assert stored["regulariser"]["reduction"] == "mean"
    assert stored["data"]["fingerprint"] == open_dataset(config.data).fingerprint
    model = models.build(stored["preset"], action_dim=stored["action_dim"], **stored["network"])
    tensors = load_file(config.out / "checkpoint.safetensors")
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    model.load_state_dict(weights)
    np.testing.assert_allclose(model.action_mean, stored["action_mean"], rtol=1e-6)
    assert (config.out / "training.png").read_bytes().startswith(b"\x89PNG")


def test_the_look_of_the_data_is_kept(config, tmp_path):
    data = tmp_path / "paper.h5"
    data.write_bytes(config.data.read_bytes())
    with h5py.File(data, "r+") as file:
        file.attrs["look"] = "paper"
    for name, source in (("told", data), ("untold", config.data)):
        go(dataclasses.replace(config, out=tmp_path / name, data=source, steps=2))
    assert (read_config(tmp_path / "told")["data"]["look"], read_run(tmp_path / "told").look) == ("paper", "paper")
    assert (read_config(tmp_path / "untold")["data"]["look"], read_run(tmp_path / "untold").look) == (None, "fast")


def test_a_run_from_before_the_look_was_kept_goes_on_as_the_same_run(config, tmp_path):
    data = tmp_path / "paper.h5"
    data.write_bytes(config.data.read_bytes())
    with h5py.File(data, "r+") as file:
        file.attrs["look"] = "paper"
    config = dataclasses.replace(config, data=data)
    go(dataclasses.replace(config, out=tmp_path / "whole"))
    go(dataclasses.replace(config, steps=6))
    stored = read_config(config.out)
    del stored["data"]["look"]
    (config.out / "config.json").write_text(json.dumps(stored))

    go(config)

    same_run(tmp_path / "whole", config.out)
    assert read_config(config.out)["data"]["look"] == "paper"


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
