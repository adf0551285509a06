"""The evaluations of the tables: which planners, which goals, which files, into which folders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import envs
from agent.evaluate import Evaluate
from agent.planning import make
from envs import recipes
from envs.errors import BadInput, parse_command_line
from study.measure import Measurements, evaluations, main

ROOT = Path(__file__).parents[2]
MEASUREMENTS = Measurements(
    offsets=(25, 50),
    planners={"cem": {"candidates": 50, "cost": "min"}, "guided": {}, "propose": {"context": 2}},
    far={"propose": {"reach": 20}},
)


def test_every_planner_meets_every_offset_and_far_goals_have_settings_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    told = [parse_command_line(Evaluate, None, command[3:]) for command in evaluations(MEASUREMENTS, "pusht", tmp_path)]

    assert [(one.episode.planner, one.episode.offset) for one in told] == [
        (planner, offset) for offset in (25, 50) for planner in ("cem", "guided", "propose")
    ]
    assert [one.episode.plan for one in told] == [
        *(("candidates=50", "cost=min"), (), ("context=2",)),
        *(("candidates=50", "cost=min"), (), ("context=2", "reach=20")),
    ]
    assert [bool(one.agents) for one in told] == [True, False, False] * 2
    assert {one.model for one in told} == {("pretrained/pusht/qqworld.onnx", "pretrained/pusht/lewm.onnx")}
    assert {one.seeds for one in told} == {(0, 1, 2, 3, 4, 5)}
    assert told[2].out == tmp_path / "pusht" / "propose-25"


@pytest.mark.parametrize("task", envs.TASKS)
def test_the_shipped_recipes_name_planners_and_settings_that_exist(task):
    measurements = recipes.apply(Measurements(), task, "measure")
    assert measurements.offsets[0] == envs.OFFSET
    assert measurements.planners.keys() >= measurements.far.keys()
    for planner, near in measurements.planners.items():
        make(planner, **near, **measurements.far.get(planner, {}))


def test_planners_that_cannot_be_are_refused_with_file_and_key(tmp_path, monkeypatch):
    sections = "".join(f"[{name}]\n" for name in recipes.SECTIONS)
    (tmp_path / "pusht.toml").write_text(f"{sections}planners.cem = {{ candidate = 5 }}\n")
    monkeypatch.setattr(recipes, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["measure", "--env", "pusht"])
    with pytest.raises(BadInput, match="candidate") as refused:
        main()
    assert str(refused.value).startswith(f"{tmp_path / 'pusht.toml'} has [measure.planners.cem]: ")


def test_nothing_here_can_stand_in_for_the_shipped_files(tmp_path):
    (tmp_path / "qqworld.onnx").write_bytes((ROOT / "pretrained/pusht/qqworld.onnx").read_bytes())
    shipped = [ROOT / "pretrained/two-room" / name for name in ("qqworld.onnx", "lewm.onnx")]
    words = [sys.executable, "-m", "study.measure", "--env", "two-room", "--dry-run"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout
    for line in done.stdout.splitlines():
        named = [word for word in line.split() if word.endswith(".onnx")]
        assert [(tmp_path / word).resolve() for word in named] == shipped
