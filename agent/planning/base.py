"""What a planner is: it looks for actions whose predicted latents come near a goal, and never sees the task.

A planner is a callable object: `planner(model, problems, deadline)` answers each `Problem` with a `Plan`. Its settings
are the fields of a frozen dataclass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from agent.world_models.base import WorldModel

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

    @property
    def every_step(self) -> bool:
        """Whether to plan at every step of the task, not only after `replan` blocks."""
        ...

    @property
    def needs_proposals(self) -> bool:
        """Whether it works only with models that propose actions."""
        ...

    def __call__(self, model: WorldModel, problems: Sequence[Problem], deadline: float | None = None) -> list[Plan]:
        """One plan for each problem; with a `deadline` (a reading of `time.perf_counter`) the best found by then."""
        ...


def check_horizon(planner: Planner, model: WorldModel) -> None:
    """Refuse a planner that looks further than its model can."""
    if planner.horizon > model.horizon:
        raise ValueError(f"this model predicts {model.horizon} blocks at most, not {planner.horizon}: lower horizon")
