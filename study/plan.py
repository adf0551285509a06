"""A plan of a study: which cells to train and how to judge them, written down before anything is run."""

import itertools
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agent import planning
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
class Measures:
    """How much of every cell's latents is measured; the defaults are the paper's."""

    frames: int = 20_000
    directions: int = 6144
    """Held-out latents, and random directions that they are projected on, for normality."""
    probe_seeds: int = 6
    probe_frames: int = 4096
    """Repetitions of the probes, and latents that each is fitted on."""


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
class About:
    """What a plan says about itself."""

    question: str = ""
    episodes: int | None = None
    """Episodes of data; None is what the task's recipe asks for."""
    minutes: float = 10.0
    """What a cell takes of one core, about."""


@dataclass(frozen=True)
class Plan:
    """A grid of training runs, measured and evaluated alike."""

    name: str
    about: About
    cells: tuple[Cell, ...]
    evaluation: Evaluation
    measures: Measures
    contrast: Contrast

    def cell(self, name: str) -> Cell:
        """The cell called `name`."""
        found = [cell for cell in self.cells if cell.name == name]
        if not found:
            raise BadInput(f"the plan {self.name} has no cell {name}")
        return found[0]


SECTIONS = ("shared", "evaluate", "measure", "contrast")


def read(path: Path) -> Plan:
    """The plan in a TOML file; what cannot be carried out is refused in one sentence."""
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} is not a plan that can be read: {error}") from error
    grids = table.pop("grids", None)
    sections = {name: table.pop(name, {}) for name in SECTIONS}
    if wrong := [name for name, section in sections.items() if not isinstance(section, dict)]:
        raise BadInput(f"{path} has {wrong[0]} = {sections[wrong[0]]!r}, which must be a section [{wrong[0]}]")
    if not grids or not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise BadInput(f"{path} has no cells: it needs at least one section [[grids]]")
    about = recipes.filled(About(), table, f"{path} has")
    if not about.question:
        raise BadInput(f"{path} has no question: say in one sentence what it is to find out")
    cells = [cell for grid in grids for cell in _cells(path, sections["shared"], grid)]
    names = [cell.name for cell in cells]
    if twice := sorted(name for name in set(names) if names.count(name) > 1):
        raise BadInput(f"{path} has the cell {twice[0]} twice")
    plan = Plan(
        name=path.stem,
        about=about,
        cells=tuple(cells),
        evaluation=recipes.filled(Evaluation(), sections["evaluate"], f"{path} has [evaluate]"),
        measures=recipes.filled(Measures(), sections["measure"], f"{path} has [measure]"),
        contrast=recipes.filled(Contrast(), sections["contrast"], f"{path} has [contrast]"),
    )
    _check(path, plan)
    return plan


def _cells(path: Path, shared: dict[str, Any], grid: dict[str, Any]) -> list[Cell]:
    """All combinations of a grid's values; what is not a list is the same in all of them."""
    axes = {key: value if isinstance(value, list) else [value] for key, value in grid.items()}
    if empty := [key for key, values in axes.items() if not values]:
        raise BadInput(f"{path} has a grid without cells: {empty[0]} is an empty list")
    cells = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        settings = shared | chosen
        task = settings.pop("task", "two-room")
        if task not in TASKS:
            raise BadInput(f"{path} names the unknown task '{task}': choose one of {', '.join(TASKS)}")
        words = [f"{SHORT.get(key, key)}{value}" for key, value in {"task": task, **chosen}.items()]
        cell = Cell("-".join(words), task, settings)
        try:
            config = config_of(cell, "it has a grid with")
            config.check()
            config.make_objective()
            config.network_settings()
        except BadInput as error:
            raise BadInput(f"{path} has a cell that cannot be trained, {cell.name}: {error}") from None
        cells.append(cell)
    return cells


def _check(path: Path, plan: Plan) -> None:
    """Refuse what the types of single settings do not tell."""
    for planner, settings in plan.evaluation.planners.items():
        try:
            planning.make(base_of(planner), **settings)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{path} has [evaluate] with a planner that cannot be used: {error}") from None
    counts = {"episodes": plan.evaluation.episodes, "offset": plan.evaluation.offset, **vars(plan.measures)}
    if wrong := [name for name, count in counts.items() if count < 1]:
        raise BadInput(f"{path} has {wrong[0]} = {counts[wrong[0]]}, which must be at least 1")
    seeds = plan.evaluation.seeds
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise BadInput(f"{path} has [evaluate] seeds = {list(seeds)}: give at least one, none negative, none twice")
    if plan.evaluation.planners and plan.contrast.planner not in plan.evaluation.planners:
        raise BadInput(f"{path} has [contrast] with the planner {plan.contrast.planner}, which [evaluate] does not run")


def base_of(planner: str) -> str:
    """The registered planner behind a name of [evaluate]: "lewm unclamped" is lewm with settings of its own."""
    return planner.split(" ")[0]


def config_of(cell: Cell, where: str = "a cell has") -> Config:
    """The training run of a cell: the recipe's encoder and predictor in one run, with the cell's own settings.

    `windows` stands for `steps`: so many windows are seen, whatever the batch.
    """
    settings = dict(cell.settings)
    windows = settings.pop("windows", None)
    if not recipes.fits(windows, int | None):
        raise BadInput(f"{where} windows = {windows!r}, which must be a whole number")
    asked = Config(cell.task, objective=settings.get("objective", "qqworld"), preset=settings.get("preset", "compact"))
    config = recipes.filled(defaults("joint", asked), settings, where)
    if windows is not None:
        config = replace(config, steps=round(windows / config.batch))
    return replace(config, eval_every=max(config.steps // 8, 1), checkpoint_every=max(config.steps // 4, 1))
