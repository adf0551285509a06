"""The evaluations of the README's table: which planners, which goals, into which folders."""

import tomllib

import pytest

import envs
from agent.evaluate import Evaluate
from agent.planning import make, parse_settings
from envs.errors import parse_command_line
from study.measure import evaluations
from study.reproduce import RECIPES

RECIPE = {
    "offsets": [25, 50],
    "measure": {"cem": "candidates=50 cost=min", "guided": "", "propose": "context=2"},
    "far": {"propose": "reach=20"},
}


def test_every_planner_meets_every_offset_and_far_goals_have_settings_of_their_own(tmp_path):
    told = [parse_command_line(Evaluate, None, command[3:]) for command in evaluations(RECIPE, "pusht", tmp_path)]

    assert [(one.episode.planner, one.episode.offset) for one in told] == [
        (planner, offset) for offset in (25, 50) for planner in ("cem", "guided", "propose")
    ]
    assert [one.episode.plan for one in told] == [
        *(("candidates=50", "cost=min"), (), ("context=2",)),
        *(("candidates=50", "cost=min"), (), ("context=2", "reach=20")),
    ]
    assert [bool(one.agents) for one in told] == [True, False, False] * 2
    assert {one.model for one in told} == {("qqworld.onnx", "lewm.onnx")}
    assert {one.seeds for one in told} == {(0, 1, 2, 3, 4, 5)}
    assert told[2].out == tmp_path / "pusht" / "propose-25"


@pytest.mark.parametrize("task", envs.TASKS)
def test_the_shipped_recipes_name_planners_and_settings_that_exist(task):
    recipe = tomllib.loads(RECIPES.read_text())[task]
    assert recipe["offsets"][0] == 25
    for planner, near in recipe["measure"].items():
        make(planner, **parse_settings([*near.split(), *recipe["far"].get(planner, "").split()]))
