"""A study end to end on a tiny plan: the same cells whoever runs them and however often they are stopped."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from envs.errors import BadInput
from study.cell import alone
from study.cells import PLANS, ROOT
from study.run import Run, in_processes, study

SMOKE = PLANS / "smoke.toml"
NAMES = {"two-room-qqworld-s0", "two-room-lewm-s0"}
PATIENCE = 120
"""Seconds until a process that shows no progress has failed."""


def cells_in(folder):
    """The cells of a folder by name, without what depends on the machine's mood."""
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    for cell in found.values():
        del cell["seconds"], cell["training_mb"]
        for evaluation in cell["evaluations"].values():
            del evaluation["plan_ms_p50"]
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of datasets: what the first study collects, the others find."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def alone_cells(tmp_path_factory, data):
    """The cells of the smoke plan, run one after the other."""
    folder = tmp_path_factory.mktemp("one")
    assert study(Run(SMOKE, out=folder / "out", cells=folder / "cells", data=data)) == 0
    assert not any((folder / "out").iterdir())
    return cells_in(folder / "cells")


def test_a_cell_holds_everything_that_tables_and_figures_need(alone_cells):
    assert set(alone_cells) == NAMES

    cell = alone_cells["two-room-lewm-s0"]
    assert (cell["plan"], cell["task"], cell["settings"]["objective"]) == ("smoke", "two-room", "lewm")
    assert {"error_1", "error_5"} <= set(cell["held_out"])
    assert len(cell["evaluations"]["lewm"]["first_hit"]) == len(cell["evaluations"]["lewm"]["final"]) == 2
    assert set(cell["probes"]["mlp"]) == {"agent_x", "agent_y"}
    assert {"ks", "ep", "radius_mean", "radius_variance", "kurtosis", "effective_rank"} <= set(cell["normality"])
    assert (len(cell["normality"]["qq_rmse_quantiles"]), len(cell["normality"]["mean_quantiles"])) == (41, 25)
    assert [point["step"] for point in cell["curve"]] == [0, 1, 2, 3, 4]


def test_two_workers_give_the_same_cells(alone_cells, data, tmp_path):
    assert study(Run(SMOKE, out=tmp_path / "out", cells=tmp_path / "cells", data=data, workers=2)) == 0

    assert cells_in(tmp_path / "cells") == alone_cells


def test_a_study_that_was_killed_goes_on_to_the_same_cells(alone_cells, data, tmp_path):
    words = [str(SMOKE), "--out", str(tmp_path / "out"), "--cells", str(tmp_path / "cells"), "--data", str(data)]
    killed = subprocess.Popen(
        [sys.executable, "-m", "study.run", *words],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + PATIENCE
    while not list((tmp_path / "out").glob("*/run/checkpoint.safetensors")):
        assert time.monotonic() < until
        assert killed.poll() is None
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not list((tmp_path / "cells").glob("*.json"))

    assert study(Run(SMOKE, out=tmp_path / "out", cells=tmp_path / "cells", data=data)) == 0

    assert cells_in(tmp_path / "cells") == alone_cells


def test_a_cell_waits_for_a_process_that_outlived_its_study(tmp_path):
    entered = threading.Event()

    def second():
        with alone(tmp_path):
            entered.set()

    with alone(tmp_path):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert not entered.wait(0.2)
    assert entered.wait(PATIENCE)
    waiting.join()


def test_a_cell_that_diverges_is_a_result(data, tmp_path, alone_cells):
    plan = tmp_path / "smoke.toml"
    plan.write_text(SMOKE.read_text().replace('["qqworld", "lewm"]', '"qqworld"\nlr = 1e30'))

    assert study(Run(plan, out=tmp_path / "out", cells=tmp_path / "cells", data=data)) == 0

    (path,) = (tmp_path / "cells").glob("*.json")
    assert "not finite at step" in json.loads(path.read_text())["diverged"]


def test_ray_gives_the_same_cells(alone_cells, data, tmp_path):
    pytest.importorskip("ray")

    assert study(Run(SMOKE, out=tmp_path / "out", cells=tmp_path / "cells", data=data, ray=True)) == 0

    assert cells_in(tmp_path / "cells") == alone_cells


def test_a_finished_cell_is_not_run_again_and_one_of_another_plan_is_refused(alone_cells, tmp_path, capsys):
    for name, cell in alone_cells.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(cell))

    assert study(Run(SMOKE, out=tmp_path / "out", cells=tmp_path)) == 0
    assert "2 cells, 0 of them to run, about 0.0 core-hours" in capsys.readouterr().out

    other = alone_cells["two-room-lewm-s0"] | {"settings": {"objective": "lewm", "seed": 0}}
    (tmp_path / "two-room-lewm-s0.json").write_text(json.dumps(other))
    with pytest.raises(BadInput, match=r"two-room-lewm-s0\.json was run with other settings"):
        study(Run(SMOKE, out=tmp_path / "out", cells=tmp_path))


def test_a_cell_that_fails_is_named_and_does_not_stop_the_others():
    commands = {
        "bad": [sys.executable, "-c", "raise SystemExit('error: no room left')"],
        "silent": [sys.executable, "-c", "raise SystemExit(3)"],
        "good": [sys.executable, "-c", ""],
    }

    assert dict(in_processes(commands, workers=2)) == {
        "bad": "error: no room left",
        "silent": "it ended with status 3",
        "good": None,
    }


def test_no_workers_at_all_are_refused():
    with pytest.raises(BadInput, match="--workers must be at least 1"):
        study(Run(SMOKE, workers=0))
