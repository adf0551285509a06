"""What planners that try plans in the model share: settings, costs, and one rollout for several problems."""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from agent.planning.base import Plan, Problem, check_horizon
from agent.planning.search_space import SearchSpace
from agent.world_models.base import WorldModel, latent_distance

Cost = Literal["terminal", "min", "sum"]
KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}
"""Type of a setting to the types of its values, and what to call them."""
LARGEST = 1e9
"""Larger numbers mean nothing to a planner, and overflow."""


class Found(NamedTuple):
    """What a search comes back with, in search units.

    The cheapest of the `answers` `(M, H, k*A)` becomes the plan; the `elites` `(E, H, k*A)` are for people to look at.
    The first few answers may be `proposals` as they are, to which the others are preferred only if they cost less.
    """

    answers: np.ndarray
    elites: np.ndarray
    proposals: int = 0


Search = Generator[np.ndarray, np.ndarray, Found]
"""Yields candidates `(N, H, k*A)` in search units and is sent their costs `(N,)`."""


@dataclass(frozen=True)
class RolloutPlanner:
    """A planner that compares plans by what the model predicts of them."""

    horizon: int = 5
    """Blocks that a plan looks ahead."""
    cost: Cost = "terminal"
    """Squared latent distance to the goal: after the last block, the least over all blocks, or their sum."""
    replan: int = 1
    """Blocks of a plan that are carried out before the next plan."""
    context: int = 1
    """Latents of context, one block apart, at most."""

    name: ClassVar[str]
    needs_proposals: ClassVar[bool] = False

    @property
    def every_step(self) -> bool:
        """Whether to plan at every step of the task: not unless a planner has a setting for it."""
        return False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            allowed, words = KINDS.get(field.type, ((), ""))
            if allowed and type(value) not in allowed:
                raise ValueError(f"{field.name} of the planner is {words}, got {value!r}")
            if isinstance(value, int | float) and not abs(value) <= LARGEST:
                raise ValueError(f"{field.name} of the planner must lie within {LARGEST:g}, got {value!r}")
        self._at_least(1, "horizon", "replan", "context")
        if self.cost not in ("terminal", "min", "sum"):
            raise ValueError(f"cost of the planner is terminal, min or sum, got {self.cost!r}")
        if self.replan > self.horizon:
            raise ValueError(f"a plan of {self.horizon} blocks cannot be carried out for {self.replan}: lower replan")

    def _at_least(self, least: int, *counts: str) -> None:
        for count in counts:
            if getattr(self, count) < least:
                raise ValueError(f"{count} of the planner must be at least {least}, got {getattr(self, count)}")

    def space(self, model: WorldModel, problem: Problem) -> SearchSpace:
        """Where to search."""
        return SearchSpace.of(model, self.horizon, problem.committed)

    def search(self, space: SearchSpace, problem: Problem, late: Callable[[], bool]) -> Search:
        """Look for good plans, perhaps in iterations; asks `late` after each whether there is time for another."""
        raise NotImplementedError

    def __call__(self, model: WorldModel, problems: Sequence[Problem], deadline: float | None = None) -> list[Plan]:
        """Run one search for each problem side by side, their candidates stacked in one rollout an iteration."""
        check_horizon(self, model)
        started = time.perf_counter()
        spaces = [self.space(model, problem) for problem in problems]
        rollouts = Rollouts(model, self.cost, problems)

        def late() -> bool:
            now = time.perf_counter()
            return deadline is not None and now + (now - started) / max(rollouts.count, 1) > deadline

        searches = [self.search(space, problem, late) for space, problem in zip(spaces, problems, strict=True)]
        last: dict[int, np.ndarray] = {}
        iterations: Counter[int] = Counter()
        found: dict[int, Found] = {}
        sent: dict[int, Any] = dict.fromkeys(range(len(problems)))  # a generator begins when it is sent None
        while sent:
            candidates: dict[int, np.ndarray] = {}
            for number, costs in sent.items():
                try:
                    candidates[number] = spaces[number].actions(searches[number].send(costs))
                except StopIteration as stop:
                    found[number] = stop.value
            last |= candidates
            iterations.update(candidates.keys())
            sent = rollouts.costs(candidates) if candidates else {}

        answers = {number: space.actions(found[number].answers) for number, space in enumerate(spaces)}
        predicted = rollouts.latents(answers)
        total = time.perf_counter() - started
        ms = {"search": total - rollouts.seconds, "rollout": rollouts.seconds, "total": total}
        plans = []
        for number, problem in enumerate(problems):
            distances = latent_distance(model, predicted[number], problem.goal)
            costs = reduce(distances, self.cost)
            best, proposals = int(np.argmin(costs)), found[number].proposals
            by_source = {"proposal": costs[:proposals], "search": costs[proposals:]}
            plans.append(
                Plan(
                    actions=answers[number][best],
                    latents=predicted[number][best],
                    distances=distances[best],
                    cost=float(costs[best]),
                    elites=spaces[number].actions(found[number].elites),
                    candidates=last.get(number, answers[number]),
                    iterations=iterations[number],
                    ms={phase: 1e3 * seconds for phase, seconds in ms.items()},
                    source="proposal" if best < proposals else "search",
                    costs={source: float(own.min()) for source, own in by_source.items() if len(own)},
                )
            )
        return plans


@dataclass(frozen=True)
class SamplingPlanner(RolloutPlanner):
    """A planner that tries candidates, many at a time, and learns from their costs."""

    candidates: int = 100
    """Candidates in one iteration."""
    iterations: int = 10
    """Iterations at most."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(1, "candidates", "iterations")


class Rollouts:
    """Rolls candidates of several problems in one call, and keeps the time that it takes."""

    def __init__(self, model: WorldModel, cost: Cost, problems: Sequence[Problem]):
        self.model = model
        self.cost = cost
        self.problems = problems
        self.count = 0
        self.seconds = 0.0

    def latents(self, candidates: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Predicted latents `(N, H, D)` for each problem's candidates `(N, H, k*A)`."""
        chosen = [self.problems[number] for number in candidates]
        context = np.stack([problem.context for problem in chosen])
        past = np.stack([problem.past_actions for problem in chosen])
        counts = [len(actions) for actions in candidates.values()]
        if len(chosen) > 1:
            context, past = np.repeat(context, counts, axis=0), np.repeat(past, counts, axis=0)
        started = time.perf_counter()
        latents = self.model.rollout(context, past, np.concatenate(list(candidates.values())))
        self.seconds += time.perf_counter() - started
        self.count += 1
        return dict(zip(candidates, np.split(latents, np.cumsum(counts)[:-1]), strict=True))

    def costs(self, candidates: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """What each problem's candidates cost `(N,)`."""
        costs = {
            number: reduce(latent_distance(self.model, latents, self.problems[number].goal), self.cost)
            for number, latents in self.latents(candidates).items()
        }
        if not all(np.isfinite(cost).all() for cost in costs.values()):
            raise FloatingPointError("the world model predicts latents that are not finite numbers")
        return costs


def reduce(distances: np.ndarray, cost: Cost) -> np.ndarray:
    """One cost `(N,)` for each candidate from its distances `(N, H)` after each block."""
    return {"terminal": distances[:, -1], "min": distances.min(axis=1), "sum": distances.sum(axis=1)}[cost]
