"""The finished cells of a plan, as they are committed: which runs there are, and what they reached."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import BadInput
from study import plan as plans
from study.plan import Cell, Plan
from study.statistics import Difference, compare
from training.config import Config

ROOT = Path(__file__).parent.parent
PLANS = ROOT / "study" / "plans"
CELLS = ROOT / "docs" / "study"
MEASURES = {"first_hit": "first hit", "final": "last step"}
"""When success counts: at any step, or at the last."""


@dataclass(frozen=True)
class Run:
    """One finished cell."""

    cell: Cell
    config: Config
    kept: dict[str, Any]
    """What `cell.json` holds."""

    @property
    def arm(self) -> str:
        """What is compared: the objective, and its targets where they are not the published ones."""
        corrected = self.config.regulariser.targets == "corrected"
        return f"{self.config.objective} corrected" if corrected else self.config.objective

    @property
    def diverged(self) -> bool:
        """Whether training ended with numbers that are not finite: such a run has settings only."""
        return "diverged" in self.kept

    def outcomes(self, planner: str, measure: str) -> np.ndarray:
        """Success of every pair, bool `(pairs,)`."""
        return np.array([letter == "1" for letter in self.kept["evaluations"][planner][measure]])


@dataclass(frozen=True)
class Study:
    """A plan and what is finished of it."""

    plan: Plan
    finished: tuple[Run, ...]

    @property
    def progress(self) -> str:
        """How much is finished, empty if all is."""
        whole, there = len(self.plan.cells), len(self.finished)
        return "" if there == whole else f"{there} of {whole} cells so far."

    @property
    def diverged(self) -> str:
        """Which runs diverged, empty if none did."""
        names = [run.cell.name for run in self.finished if run.diverged]
        return f"Diverged, and left out: {', '.join(names)}." if names else ""

    def runs(self, arm: str | None = None, task: str | None = None) -> list[Run]:
        """The runs of an arm and a task that did not diverge, by training seed."""
        chosen = [
            run
            for run in self.finished
            if not run.diverged and arm in (None, run.arm) and task in (None, run.config.env)
        ]
        return sorted(chosen, key=lambda run: run.config.seed)

    def arms(self) -> list[str]:
        """The arms that have runs, in the order of the plan."""
        found = {run.arm for run in self.runs()}
        order = {cell.name: number for number, cell in enumerate(self.plan.cells)}
        first = {arm: min(order[run.cell.name] for run in self.runs(arm)) for arm in found}
        return sorted(found, key=first.__getitem__)


def read(name: str, cells: Path = CELLS) -> Study:
    """The plan called `name` and its finished cells below `cells`."""
    plan = _plan(name)
    return Study(plan, tuple(finished(plan, cells / name)))


@cache
def _plan(name: str) -> Plan:
    return plans.read(PLANS / f"{name}.toml")


def finished(plan: Plan, folder: Path) -> Iterable[Run]:
    """The cells of a plan that `folder` holds; one that was run with other settings is refused."""
    for cell in plan.cells:
        path = folder / f"{cell.name}.json"
        if not path.exists():
            continue
        try:
            kept = json.loads(path.read_text())
            same = kept["settings"] == json.loads(json.dumps(cell.settings))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{path} is not a finished cell ({error}): delete it, and it is run again") from error
        if not same:
            raise BadInput(f"{path} was run with other settings than the plan has now: delete it, or mend the plan")
        yield Run(cell, plans.config_of(cell), kept)


def contrast(
    first: Sequence[Run],
    second: Sequence[Run],
    planner: str,
    measure: str,
    key: Callable[[Run], Any] = lambda run: run.config.seed,
) -> Difference | None:
    """First minus second by training run, over the keys (by default seeds) that both have; None if there are none."""
    ours, theirs = ({key(run): run.outcomes(planner, measure) for run in runs} for runs in (first, second))
    shared = [name for name in ours if name in theirs]
    return compare([ours[name] for name in shared], [theirs[name] for name in shared]) if shared else None
