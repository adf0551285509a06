"""Measure the shipped models of a task with every planner, on near and far goals: the table in the README.

    python -m study.measure --env pusht          or: make results TASK=pusht

Each planner and distance has a folder of its own below docs/results; what is finished stays, and the same command goes
on. The settings are those in pretrained/recipes.toml: `measure` for all goals and, on top of it, `far` for those
farther away than the planners were chosen for.
"""

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs import TASKS
from envs.errors import BadInput, parse_command_line, run
from envs.evaluation_pairs import OFFSET
from study.reproduce import MEASURED, OBJECTIVES, RECIPES, carry_out, python


@dataclass(frozen=True)
class Measure:
    """Measure the shipped models of a task with every planner, on near and far goals."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    out: Path = Path("docs/results")
    """Folder for the results, one folder a task in it."""
    dry_run: bool = False
    """Only say what would be run."""


def evaluations(recipe: dict[str, Any], env: str, out: Path) -> list[list[str]]:
    """The commands that evaluate a task; the first planner's also runs the agents that do not plan."""
    commands: list[list[str]] = []
    for offset in recipe["offsets"]:
        for number, (planner, near) in enumerate(recipe["measure"].items()):
            settings = f"{near} {recipe['far'].get(planner, '') if offset > OFFSET else ''}".strip()
            models = [f"{objective}.onnx" for objective in OBJECTIVES]
            words = ["--env", env, "--model", *models, "--planner", planner, "--offset", str(offset), MEASURED]
            words += ["--plan", settings] if settings else []
            words += ["--agents"] if number else []
            commands.append(python("agent.evaluate", *words, "--out", str(out / env / f"{planner}-{offset}")))
    return commands


def main() -> int:
    settings = parse_command_line(Measure, __doc__)
    if settings.env not in TASKS:
        raise BadInput(f"unknown task '{settings.env}': choose one of {', '.join(TASKS)}")
    commands = evaluations(tomllib.loads(RECIPES.read_text())[settings.env], settings.env, settings.out)
    print(*map(shlex.join, commands), sep="\n", flush=True)
    return 0 if settings.dry_run else carry_out(commands)


if __name__ == "__main__":
    run(main)
