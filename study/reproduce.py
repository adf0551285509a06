"""Make the shipped models of a task from scratch: collect, train, export.

    python -m study.reproduce --env pusht          or: make reproduce TASK=pusht

Runs the commands of the README for both objectives, and nothing else; the settings are those in recipes/TASK.toml. Each
command can be stopped and goes on when this one is run again. At the end it says how many minutes each took.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import envs
from envs import recipes
from envs.errors import BadInput, parse_command_line, run

OBJECTIVES = ("qqworld", "lewm")


@dataclass(frozen=True)
class Reproduce:
    """Make the shipped models of a task from scratch."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    objectives: tuple[str, ...] = OBJECTIVES
    """Regularisers to train with."""
    dry_run: bool = False
    """Only say what would be run."""


def commands(env: str, objectives: Sequence[str] = OBJECTIVES) -> list[list[str]]:
    """The commands that make a task's models, in their order."""
    found = [python("envs.collect", "--env", env)]
    for objective in objectives:
        other = [] if objective == "qqworld" else ["--objective", objective]
        run_folder = [] if objective == "qqworld" else ["--run", str(recipes.run_path(env, objective))]
        found.append(python("training.train", "--env", env, *other))
        found.append(python("export", "--env", env, *run_folder))
    return found


def python(module: str, *words: str) -> list[str]:
    """The command that runs `module`."""
    return ["python", "-m", module, *words]


def checked(env: str) -> str:
    """A task's name that has a recipe."""
    if env not in envs.TASKS:
        raise BadInput(f"unknown task '{env}': choose one of {', '.join(envs.TASKS)}")
    if not recipes.path_of(env).is_file():
        raise BadInput(f"there is no recipe {recipes.path_of(env)}: nothing says how models of {env} are made")
    recipes.read(env)
    return env


def carry_out(todo: Sequence[list[str]], folder: Path | None = None) -> int:
    """Run every command with this Python, to the first that fails; its exit status, or 0."""
    took: list[str] = []
    for words in todo:
        print(f"\n$ {shlex.join(words)}", flush=True)
        started = time.perf_counter()
        if status := subprocess.run([sys.executable, *words[1:]], cwd=folder, check=False).returncode:
            print(f"this step ended with status {status}: the same command goes on from here", file=sys.stderr)
            return status
        took.append(f"{(time.perf_counter() - started) / 60:6.1f} min  {shlex.join(words)}")
    print("", *took, sep="\n")
    return 0


def main() -> int:
    settings = parse_command_line(Reproduce, __doc__)
    todo = commands(checked(settings.env), settings.objectives)
    minutes = recipes.minutes(settings.env)
    trained = sum(minutes.get(section, 0) for section in ("encoder", "predictor", "proposals"))
    total = minutes.get("data", 0) + len(settings.objectives) * trained
    print(f"{settings.env}: about {total:.0f} minutes on two cores", *map(shlex.join, todo), sep="\n", flush=True)
    return 0 if settings.dry_run else carry_out(todo)


if __name__ == "__main__":
    run(main)
