"""The shipped models' recipes: what would be run, and that it stops where a step fails."""

import shlex
import tomllib

import pytest
import tyro

import envs
from agent.evaluate import Evaluate
from agent.onnx_model import OnnxWorldModel
from agent.planner import parse
from envs import BadInput
from envs.collect import Collect
from export.__main__ import Export
from export.reproduce import OBJECTIVES, RECIPES, Reproduce, Step, carry_out, reproduce, steps
from training import propose
from training.config import Config

COMMANDS = {
    "envs.collect": Collect,
    "training.train": Config,
    "training.propose": propose.Config,
    "export": Export,
    "agent.evaluate": Evaluate,
}

RECIPE = """
[two-room]
collect = "--episodes 4 --steps 40"
train = "--steps 2 --batch 4"
propose = "--steps 3"
minutes = {collect = 1, train = 2, propose = 3, evaluate = 4}
qqworld = {train = "--weight 10", planner = "name=propose"}
lewm = {train = "--weight 0.2", planner = "name=cem candidates=50"}
"""


def test_it_says_beforehand_what_it_will_run_and_how_long_that_takes(tmp_path, capsys):
    recipes = tmp_path / "recipes.toml"
    recipes.write_text(RECIPE)

    assert reproduce(Reproduce("two-room", tmp_path, dry_run=True), recipes) == 0

    said = capsys.readouterr().out.splitlines()
    assert said[0] == "two-room: about 17 minutes on two cores"
    modules = [line.split("python -m ")[1].split()[0] for line in said[1:]]
    train = ["training.train", "training.propose", "export"]
    assert modules == ["envs.collect", *train, *train, "agent.evaluate"]
    assert f"--data {tmp_path}/two-room/data.h5 --objective lewm" in said[5]
    assert said[5].endswith("--steps 2 --batch 4 --weight 0.2")
    assert "--planner name=cem candidates=50" in said[7]


def test_a_task_without_a_recipe_is_refused_in_one_sentence(tmp_path):
    recipes = tmp_path / "recipes.toml"
    recipes.write_text(RECIPE)
    with pytest.raises(BadInput, match="nothing to reproduce"):
        reproduce(Reproduce("cube", tmp_path), recipes)
    with pytest.raises(BadInput, match="unknown task 'chess'"):
        reproduce(Reproduce("chess", tmp_path), recipes)


def test_a_step_that_fails_ends_it_with_that_status(tmp_path, capfd):
    ran = tmp_path / "ran"
    steps = [Step(1, ["python", "-c", "import sys; sys.exit(3)"]), Step(1, ["python", "-c", f"open({str(ran)!r}, 'w')"])]
    assert carry_out(steps) == 3
    assert not ran.exists()
    assert "the same command goes on from here" in capfd.readouterr().err


@pytest.mark.parametrize("task", envs.TASKS)
def test_every_command_of_a_shipped_recipe_is_understood(task, tmp_path):
    recipe = tomllib.loads(RECIPES.read_text())[task]
    for step in steps(recipe, task, tmp_path):
        module, arguments = step.command[2], step.command[3:]
        settings = tyro.cli(COMMANDS[module], args=arguments, config=(tyro.conf.OmitArgPrefixes,))
        if hasattr(settings, "check"):
            settings.check()


def test_a_flag_that_a_command_does_not_know_would_be_noticed():
    with pytest.raises(SystemExit):
        tyro.cli(Collect, args=["--env", "pusht", "--out", "x.h5", "--nonsense", "1"])


@pytest.mark.parametrize("task", envs.TASKS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_shipped_file_was_made_with_its_recipe(task, objective):
    file = OnnxWorldModel(RECIPES.parent / task / f"{objective}.onnx", device="cpu")
    recipe = tomllib.loads(RECIPES.read_text())[task]
    trained = tyro.cli(Config, args=[*shlex.split(recipe["train"]), *shlex.split(recipe[objective]["train"]),
                       "--env", task, "--data", "d", "--out", "o"], config=(tyro.conf.OmitArgPrefixes,))  # fmt: skip
    assert file.metadata.objective == objective
    assert file.metadata.steps == trained.steps
    assert dict(file.metadata.planner) == parse(shlex.split(recipe[objective]["planner"]))
    network = {name: list(v) if isinstance(v, tuple) else v for name, v in trained.network_settings().items()}
    assert file.metadata.network == network
    assert file.proposes == ("propose" in recipe)
