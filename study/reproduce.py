"""Make the shipped models of a task from scratch: collect, train, propose, export, evaluate.

    python -m study.reproduce --env pusht          or: make reproduce TASK=pusht

Says beforehand what it will run and how long that took on two cores. Every step can be stopped and goes on when the
same command is run again. The settings are those in pretrained/recipes.toml.
"""

import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from envs import TASKS
from envs.errors import BadInput, parse_command_line, run

RECIPES = Path(__file__).parent.parent / "pretrained" / "recipes.toml"
OBJECTIVES = ("qqworld", "lewm")
MEASURED = "--episodes 50 --seeds 0 1 2 3 4 5 --workers 2"


@dataclass(frozen=True)
class Reproduce:
    """Make the shipped models of a task from scratch."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    out: Path = Path("runs")
    """Folder for data, run folders, files and results."""
    dry_run: bool = False
    """Only say what would be run."""


class Step(NamedTuple):
    """One command and the minutes that it took."""

    minutes: float
    command: list[str]

    def __str__(self) -> str:
        return f"{self.minutes:5.0f} min  {shlex.join(self.command)}"


def steps(recipe: dict[str, Any], env: str, out: Path) -> list[Step]:
    """The commands of a recipe, in their order."""
    folder, minutes = out / env, recipe["minutes"]
    data = later = str(folder / "data.h5")
    files = [str(folder / f"{objective}.onnx") for objective in OBJECTIVES]
    plan: list[Step] = []

    def step(what: str, module: str, *words: str) -> None:
        plan.append(Step(minutes[what], python(module, *words)))

    step("collect", "envs.collect", "--env", env, "--out", data, recipe["collect"])
    if "more" in recipe:  # what comes after the encoder learns from other data
        later = str(folder / "more.h5")
        step("more", "envs.collect", "--env", env, "--out", later, recipe["more"])
    for objective, file in zip(OBJECTIVES, files, strict=True):
        own, trained = recipe[objective], str(folder / objective)
        about = ("--env", env, "--objective", objective)
        step("train", "training.train", *about, "--data", data, "--out", trained, recipe["train"], own["train"])
        if "predictor" in recipe:
            encoder, trained = trained, f"{trained}-planning"
            kept = ("--encoder-from", encoder, "--data", later, "--out", trained)
            step("predictor", "training.train", *about, *kept, recipe["predictor"], own["train"])
        if "propose" in recipe:
            step("propose", "training.propose", "--run", trained, "--data", later, recipe["propose"])
        step("export", "export", "--run", trained, "--out", file, "--planner", own["planner"])
    step("evaluate", "agent.evaluate", "--env", env, "--model", *files, MEASURED, "--out", str(folder / "results"))
    return plan


def python(module: str, *words: str) -> list[str]:
    """The command that runs `module`; a word may hold several."""
    return ["python", "-m", module, *(part for word in words for part in shlex.split(word))]


def reproduce(settings: Reproduce, recipes: Path = RECIPES) -> int:
    """Say what will be done, then do it; the exit status of the first step that fails, or 0."""
    if settings.env not in TASKS:
        raise BadInput(f"unknown task '{settings.env}': choose one of {', '.join(TASKS)}")
    recipe = tomllib.loads(recipes.read_text()).get(settings.env)
    if recipe is None:
        raise BadInput(f"no models of {settings.env} have been shipped, so there is nothing to reproduce")
    plan = steps(recipe, settings.env, settings.out)
    print(f"{settings.env}: about {sum(step.minutes for step in plan):.0f} minutes on two cores")
    print(*plan, sep="\n", flush=True)
    return 0 if settings.dry_run else carry_out([step.command for step in plan])


def carry_out(commands: Sequence[list[str]]) -> int:
    """Run every command with this Python, to the first that fails; its exit status, or 0."""
    for command in commands:
        print(f"\n$ {shlex.join(command)}", flush=True)
        if status := subprocess.run([sys.executable, *command[1:]], check=False).returncode:
            print(f"this step ended with status {status}: the same command goes on from here", file=sys.stderr)
            return status
    return 0


def main() -> int:
    return reproduce(parse_command_line(Reproduce, __doc__))


if __name__ == "__main__":
    run(main)
