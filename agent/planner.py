"""What a planner is: it looks for actions whose predicted latents come near a goal, and never sees the task.

A planner is a callable object: `planner(model, problems, deadline)` answers each `Problem` with a `Plan`. Its settings
are the fields of a frozen dataclass. A new planner is one file in `agent/planners` and one line in `PLANNERS`; one that
samples candidates inherits `SamplingPlanner` and writes its search as a generator that reads like the algorithm.
"""

import dataclasses
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from agent.world_model import WorldModel
from envs import BadInput

PLANNERS = {
    "cem": "agent.planners.cem:CEM",
    "guided": "agent.planners.guided:Guided",
    "lewm": "agent.planners.cem:lewm",
    "mppi": "agent.planners.mppi:MPPI",
    "propose": "agent.planners.propose:Propose",
    "shooting": "agent.planners.shooting:Shooting",
}
"""Name on the command line to `module:Class`, or a function that makes one with settings of its own."""
DEFAULT = "cem"
Source = Literal["search", "proposal"]


@dataclass(frozen=True)
class Problem:
    """Where a plan starts, what it should reach, and the randomness it may use."""

    context: np.ndarray
    """The last c latents `(c, D)`, oldest first, one action block apart."""
    past_actions: np.ndarray
    """The blocks between them `(c-1, k*A)`."""
    goal: np.ndarray
    """The goal's latent `(D,)`."""
    rng: np.random.Generator
    """Its own, so that a plan does not depend on which other problems are solved beside it."""
    warm_start: np.ndarray | None = None
    """What is left of the last plan `(L, k*A)`, in the task's units."""
    committed: np.ndarray | None = None
    """The first actions `(C, A)` of every plan, C < k: they will be carried out before the plan is ready."""
    guesses: np.ndarray | None = None
    """Plans worth trying `(G, H, k*A)`, in the task's units."""


@dataclass(frozen=True)
class Plan:
    """The actions to take, what the model expects of them, and how they were found."""

    actions: np.ndarray
    """Action blocks `(H, k*A)` in the task's units, inside its box."""
    latents: np.ndarray
    """The latents `(H, D)` that the model predicts after each block."""
    distances: np.ndarray
    """The squared distance `(H,)` of those latents to the goal's."""
    cost: float
    """What the planner minimised, for `actions`."""
    elites: np.ndarray
    """The best candidates `(E, H, k*A)`, best first."""
    candidates: np.ndarray
    """The last candidates looked at `(N, H, k*A)`."""
    iterations: int
    ms: Mapping[str, float]
    """Milliseconds by phase: `search` (sampling, sorting), `rollout` (the model), `propose` and `total`."""
    source: Source = "search"
    """What found the actions: a search, or the model's proposals as they are."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """The least cost that each source came to; the plan is that of the lower one."""


class Planner(Protocol):
    """Answers each problem with a plan, all of them in the same rollout calls where it can."""

    @property
    def name(self) -> str: ...

    @property
    def horizon(self) -> int:
        """Blocks that a plan looks ahead (H)."""
        ...

    @property
    def replan(self) -> int:
        """Blocks of a plan that are carried out before the next plan."""
        ...

    @property
    def context(self) -> int:
        """Latents of context, one block apart, that the planner wants at most."""
        ...

    def __call__(self, model: WorldModel, problems: Sequence[Problem], deadline: float | None = None) -> list[Plan]:
        """One plan for each problem; with a `deadline` (a reading of `time.perf_counter`) the best found by then."""
        ...


def make(name: str, **settings: Any) -> Planner:
    """The planner called `name` with some of its settings changed."""
    if name not in PLANNERS:
        raise BadInput(f"unknown planner '{name}': choose one of {', '.join(PLANNERS)}")
    module, attribute = PLANNERS[name].split(":")
    factory = getattr(importlib.import_module(module), attribute)
    known = {field.name for field in dataclasses.fields(factory())}
    if unknown := sorted(set(settings) - known):
        raise BadInput(f"planner {name} has no setting '{unknown[0]}': it has {', '.join(sorted(known))}")
    return factory(**settings)


def make_for(model: Any, name: str | None = None, assignments: Sequence[str] = ()) -> Planner:
    """The planner that `model` was tuned for, unless `name` asks for another, with `key=value` settings changed.

    A model that has been tuned carries `planner`, a mapping of the planner's `name` and its settings. Nobody has to
    know how far a model can look: a planner's own horizon gives way to the model's.
    """
    tuned = dict(getattr(model, "planner", None) or {"name": DEFAULT})
    default = tuned.pop("name", DEFAULT)
    settings = (tuned if name in (None, default) else {}) | parse(assignments)
    planner: Any = make(name or default, **settings)
    if "horizon" not in settings and planner.horizon > model.horizon:
        return dataclasses.replace(planner, horizon=model.horizon, replan=min(planner.replan, model.horizon))
    return planner


def parse(assignments: Sequence[str]) -> dict[str, Any]:
    """Settings written as `key=value`."""
    settings = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (key and equals and value):
            raise BadInput(f"a planner's setting is written key=value, for example candidates=200, not '{assignment}'")
        try:
            settings[key] = json.loads(value)
        except json.JSONDecodeError:
            settings[key] = value
    return settings


def settings_of(planner: Any) -> dict[str, Any]:
    """A planner's name and settings, as they are logged."""
    return {"name": planner.name, **dataclasses.asdict(planner)}
