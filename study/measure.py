"""Measure the shipped models of a task with every planner, on near and far goals: the tables in docs/results.

    python -m study.measure --env pusht          or: make results TASK=pusht

Each planner and distance has a folder of its own below docs/results; what is finished stays, and the same command goes
on. The settings are those of [measure] in recipes/TASK.toml: `planners` for all goals and, on top of it, `far` for
goals farther away than the planners were chosen for.
"""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import planning
from agent.world_models.registry import PRETRAINED
from envs import OFFSET, recipes
from envs.errors import BadInput, parse_command_line, run
from study.reproduce import OBJECTIVES, carry_out, checked, python

MEASURED = "--episodes 50 --seeds 0 1 2 3 4 5 --workers 2"


@dataclass(frozen=True)
class Measure:
    """Measure the shipped models of a task with every planner, on near and far goals."""

    env: str
    """Task: two-room, pusht, reacher or cube."""
    out: Path = Path("docs/results")
    """Folder for the results, one folder a task in it."""
    dry_run: bool = False
    """Only say what would be run."""


@dataclass(frozen=True)
class Measurements:
    """The section [measure] of a recipe."""

    offsets: tuple[int, ...] = (OFFSET,)
    """Steps of the data policy between start and goal."""
    planners: dict[str, Any] = field(default_factory=dict)
    """Planner to its settings; those that the file keeps are changed only where this says so."""
    far: dict[str, Any] = field(default_factory=dict)
    """What goals farther than the first offset change."""


def evaluations(measurements: Measurements, env: str, out: Path) -> list[list[str]]:
    """The commands that evaluate a task; the first planner's also runs the agents that do not plan."""
    models = [os.path.relpath(PRETRAINED / env / f"{objective}.onnx") for objective in OBJECTIVES]
    found: list[list[str]] = []
    for offset in measurements.offsets:
        for number, (planner, near) in enumerate(measurements.planners.items()):
            plan = assignments(near | (measurements.far.get(planner, {}) if offset > OFFSET else {}))
            words = ["--env", env, "--model", *models, "--planner", planner, "--offset", str(offset), *MEASURED.split()]
            words += ["--plan", *plan] if plan else []
            words += ["--agents"] if number else []
            found.append(python("agent.evaluate", *words, "--out", str(out / env / f"{planner}-{offset}")))
    return found


def assignments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as `--plan` takes them."""
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()]


def main() -> int:
    settings = parse_command_line(Measure, __doc__)
    measurements = recipes.apply(Measurements(), checked(settings.env), "measure")
    if not measurements.planners:
        raise BadInput(f"{recipes.path_of(settings.env)} names no planners in [measure]: there is nothing to measure")
    for part in ("planners", "far"):
        for planner, plan in getattr(measurements, part).items():
            try:
                planning.make(planner, **plan)
            except (TypeError, ValueError) as error:
                where = f"{recipes.path_of(settings.env)} has [measure.{part}.{planner}]"
                raise BadInput(f"{where}: {error}") from error
    todo = evaluations(measurements, settings.env, settings.out)
    print(*map(shlex.join, todo), sep="\n", flush=True)
    return 0 if settings.dry_run else carry_out(todo)


if __name__ == "__main__":
    run(main)
