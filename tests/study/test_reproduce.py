"""The shipped models' recipes: what would be run, and that it stops where a step fails."""

import json
import shlex
import tomllib

import pytest

import envs
import models
from agent.evaluate import Evaluate
from agent.planning import parse_settings
from agent.world_models.onnx import OnnxWorldModel
from envs.collect import Collect
from envs.errors import BadInput, parse_command_line
from export.__main__ import Export
from study.reproduce import OBJECTIVES, RECIPES, Reproduce, carry_out, reproduce, steps
from training.config import Config
from training.phases.proposal_trainer import ProposalConfig

COMMANDS = {
    "envs.collect": Collect,
    "training.train": Config,
    "training.propose": ProposalConfig,
    "export": Export,
    "agent.evaluate": Evaluate,
}

RECIPE = """
[two-room]
collect = "--episodes 4 --steps 40"
train = "--steps 2 --batch 4"
more = "--episodes 4 --steps 40 --stray 0.3"
predictor = "--steps 2 --frames 6"
propose = "--steps 3"
minutes = {collect = 1, more = 1, train = 2, predictor = 1, propose = 3, export = 1, evaluate = 4}
qqworld = {train = "--weight 10", planner = "name=propose"}
lewm = {train = "--weight 0.2", planner = "name=cem candidates=50"}
"""


def test_it_says_beforehand_what_it_will_run_and_how_long_that_takes(tmp_path, capsys):
    recipes = tmp_path / "recipes.toml"
    recipes.write_text(RECIPE)

    assert reproduce(Reproduce("two-room", tmp_path, dry_run=True), recipes) == 0

    said = capsys.readouterr().out.splitlines()
    assert said[0] == "two-room: about 20 minutes on two cores"
    modules = [line.split("python -m ")[1].split()[0] for line in said[1:]]
    train = ["training.train", "training.train", "training.propose", "export"]
    assert modules == ["envs.collect", "envs.collect", *train, *train, "agent.evaluate"]
    assert f"--objective lewm --data {tmp_path}/two-room/data.h5" in said[7]
    assert said[7].endswith("--steps 2 --batch 4 --weight 0.2")
    assert f"--encoder-from {tmp_path}/two-room/lewm --data {tmp_path}/two-room/more.h5" in said[8]
    assert f"--run {tmp_path}/two-room/lewm-planning --data {tmp_path}/two-room/more.h5" in said[9]
    assert "--planner name=cem candidates=50" in said[10]


def test_a_task_without_a_recipe_is_refused_in_one_sentence(tmp_path):
    recipes = tmp_path / "recipes.toml"
    recipes.write_text(RECIPE)
    with pytest.raises(BadInput, match="nothing to reproduce"):
        reproduce(Reproduce("cube", tmp_path), recipes)
    with pytest.raises(BadInput, match="unknown task 'chess'"):
        reproduce(Reproduce("chess", tmp_path), recipes)


def test_a_step_that_fails_ends_it_with_that_status(tmp_path, capfd):
    ran = tmp_path / "ran"
    commands = [["python", "-c", "import sys; sys.exit(3)"], ["python", "-c", f"open({str(ran)!r}, 'w')"]]
    assert carry_out(commands) == 3
    assert not ran.exists()
    assert "the same command goes on from here" in capfd.readouterr().err


@pytest.mark.parametrize("task", envs.TASKS)
def test_every_command_of_a_shipped_recipe_is_understood(task, tmp_path):
    recipe = tomllib.loads(RECIPES.read_text())[task]
    for step in steps(recipe, task, tmp_path):
        module, arguments = step.command[2], step.command[3:]
        settings = parse_command_line(COMMANDS[module], None, arguments)
        if hasattr(settings, "check"):
            settings.check()


def test_a_flag_that_a_command_does_not_know_would_be_noticed():
    with pytest.raises(BadInput, match="--nonsense"):
        parse_command_line(Collect, None, ["--env", "pusht", "--out", "x.h5", "--nonsense", "1"])


def plain(network: dict) -> dict:
    """Settings as a file holds them."""
    return json.loads(json.dumps(network))


@pytest.mark.parametrize("task", envs.TASKS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_shipped_file_was_made_with_its_recipe(task, objective):
    file = OnnxWorldModel(RECIPES.parent / task / f"{objective}.onnx", device="cpu").metadata
    recipe = tomllib.loads(RECIPES.read_text())[task]
    phases = [shlex.split(recipe[phase]) for phase in ("train", "predictor") if phase in recipe]
    given = ["--env", task, "--data", "d", "--out", "o", *shlex.split(recipe[objective]["train"])]
    trained = [parse_command_line(Config, None, [*phase, *given]) for phase in phases]
    changed = {name: value for name, value in vars(trained[-1].network).items() if value is not None}
    network = trained[0].network_settings() | changed

    assert (file.task, file.objective) == (task, objective)
    assert file.steps == sum(phase.steps for phase in trained)
    assert plain(models.settings("compact", **file.network)) == plain(network)
    assert dict(file.planner) == parse_settings(shlex.split(recipe[objective]["planner"]))
    assert (file.proposals > 0) == ("propose" in recipe)
