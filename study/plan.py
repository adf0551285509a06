"""A plan of a study: which cells to train and how to judge them, written down before anything is run."""

import itertools
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from envs import OFFSET, TASKS, recipes
from envs.errors import BadInput
from training.config import Config
from training.phases.pipeline import defaults

SHORT = {"task": "", "objective": "", "targets": "", "strength": "w", "weight": "lambda", "batch": "n", "queue": "k"}
SHORT |= {"steps": "t", "latent": "d", "seed": "s"}
"""How a cell's name abbreviates its settings; others stand in full."""


@dataclass(frozen=True)
class Evaluation:
    """How every cell plans."""

    planners: dict[str, Any] = field(default_factory=lambda: {"lewm": {}})
    """Planner to its settings."""
    seeds: tuple[int, ...] = (200,)
    """Seeds of the pairs; those from 200 on were never looked at to choose anything."""
    episodes: int = 50
    """Pairs of every seed."""
    offset: int = OFFSET
    """Steps of the data policy between start and goal."""


@dataclass(frozen=True)
class Contrast:
    """What the plan is to decide."""

    first: str = "qqworld"
    second: str = "lewm"
    """Objectives that are compared."""
    planner: str = "lewm"
    measure: Literal["first_hit", "final"] = "first_hit"


@dataclass(frozen=True)
class Cell:
    """One training run and its settings, on top of those that all cells share."""

    name: str
    task: str
    settings: dict[str, Any]
    """Fields of `Config` and of the dataclasses inside it."""


@dataclass(frozen=True)
class Plan:
    """A grid of training runs, evaluated alike."""

    name: str
    question: str
    cells: tuple[Cell, ...]
    evaluation: Evaluation
    contrast: Contrast
    episodes: int | None
    """Episodes of data; None is what the task's recipe asks for."""
    minutes: float
    """What a cell takes of one core, about."""

    def cell(self, name: str) -> Cell:
        """The cell called `name`."""
        found = [cell for cell in self.cells if cell.name == name]
        if not found:
            raise BadInput(f"the plan {self.name} has no cell {name}")
        return found[0]


def read(path: Path) -> Plan:
    """The plan in a TOML file; what cannot be carried out is refused in one sentence."""
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} is not a plan that can be read: {error}") from error
    known = {"question", "episodes", "minutes", "shared", "grids", "evaluate", "contrast"}
    if unknown := sorted(set(table) - known):
        raise BadInput(f"{path} has an unknown entry '{unknown[0]}': a plan has {', '.join(sorted(known))}")
    if not isinstance(table.get("question"), str) or not table.get("grids"):
        raise BadInput(f"{path} needs a question and at least one [[grids]]")
    shared = table.get("shared", {})
    cells = [cell for grid in table["grids"] for cell in _cells(path, shared, grid)]
    if twice := {cell.name for cell in cells if [other.name for other in cells].count(cell.name) > 1}:
        raise BadInput(f"{path} has the cell {sorted(twice)[0]} twice")
    return Plan(
        name=path.stem,
        question=table["question"],
        cells=tuple(cells),
        evaluation=recipes.filled(Evaluation(), table.get("evaluate", {}), f"{path} has [evaluate]"),
        contrast=recipes.filled(Contrast(), table.get("contrast", {}), f"{path} has [contrast]"),
        episodes=table.get("episodes"),
        minutes=float(table.get("minutes", 10)),
    )


def _cells(path: Path, shared: dict[str, Any], grid: dict[str, Any]) -> list[Cell]:
    """All combinations of a grid's values; what is not a list is the same in all of them."""
    axes = {key: value if isinstance(value, list) else [value] for key, value in grid.items()}
    cells = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        settings = shared | chosen
        task = settings.pop("task", "two-room")
        if task not in TASKS:
            raise BadInput(f"{path} names the unknown task '{task}': choose one of {', '.join(TASKS)}")
        words = [f"{SHORT.get(key, key)}{value}" for key, value in {"task": task, **chosen}.items()]
        cell = Cell("-".join(words), task, settings)
        config_of(cell, f"{path} has a grid with")  # checks names and types
        cells.append(cell)
    return cells


def config_of(cell: Cell, where: str = "a cell has") -> Config:
    """The training run of a cell: the recipe's encoder and predictor in one run, with the cell's own settings.

    `windows` stands for `steps`: so many windows are seen, whatever the batch.
    """
    settings = dict(cell.settings)
    windows = settings.pop("windows", None)
    asked = Config(cell.task, objective=settings.get("objective", "qqworld"), preset=settings.get("preset", "compact"))
    config = recipes.filled(defaults("joint", asked), settings, where)
    if windows is not None:
        config = replace(config, steps=round(windows / config.batch))
    return replace(config, eval_every=max(config.steps // 8, 1), checkpoint_every=max(config.steps // 4, 1))
