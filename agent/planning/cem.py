"""The cross-entropy method, with what iCEM adds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from agent.planning.base import Problem
from agent.planning.rollouts import Found, SamplingPlanner, Search
from agent.planning.search_space import SearchSpace


@dataclass(frozen=True)
class CEM(SamplingPlanner):
    """Sample candidates around a mean, keep the elites, move the mean and the spread to them, repeat."""

    elites: int = 10
    """Best candidates that decide where the next iteration samples."""
    decay: float = 1.0
    """Each iteration has this share of the last one's candidates, but twice the elites at least."""
    std: float = 1.0
    """First spread, in standard deviations of the training actions."""
    std_warm: float = 1.0
    """The same where the last plan is carried on: below `std`, a warm start is refined rather than replaced."""
    std_floor: float = 0.05
    """The spread never falls below this."""
    momentum: float = 0.1
    """How much of the last mean and spread stays at each iteration."""
    keep: int = 5
    """Elites that take part in the next iteration again."""
    colour: float = 1.0
    """Colour of the noise along a plan: 0 white, 1 pink, 2 red."""
    agree: float = 0.0
    """Stop when no number of a plan varies more than this among the elites."""
    answer: Literal["mean", "best"] = "mean"
    """The last mean, or the better of it and the best elite."""

    name: ClassVar[str] = "cem"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.elites <= self.candidates:
            raise ValueError(f"elites must lie between 2 and the {self.candidates} candidates, got {self.elites}")
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {self.decay}")
        if not 0 <= self.keep <= self.elites:
            raise ValueError(f"keep must lie between 0 and the {self.elites} elites, got {self.keep}")
        if not (0 <= self.momentum < 1 and min(self.std, self.std_warm) > 0):
            raise ValueError("CEM needs 0 <= momentum < 1, and std and std_warm above 0")
        if min(self.std_floor, self.colour, self.agree) < 0:
            raise ValueError("CEM needs std_floor, colour and agree not below 0")
        if self.answer not in ("mean", "best"):
            raise ValueError(f"answer of CEM is mean or best, got {self.answer!r}")

    def search(self, space: SearchSpace, problem: Problem, late: Callable[[], bool]) -> Search:
        mean = space.start(problem.warm_start)
        std = np.full(space.shape, self.std)
        if problem.warm_start is not None:
            std[: len(problem.warm_start)] = self.std_warm
        centres = mean[None] if problem.guesses is None else np.stack([mean, *map(space.start, problem.guesses)])
        elites, elite_costs = np.empty((0, *space.shape)), np.empty(0)

        for iteration in range(self.iterations):
            count = max(round(self.candidates * self.decay**iteration), min(2 * self.elites, self.candidates))
            around = centres[np.arange(count) % len(centres)]
            candidates = space.clamp(around + std * space.noise(problem.rng, count, self.colour))
            candidates[: len(centres)] = around[: len(centres)]
            costs = yield candidates

            pool = np.concatenate([elites[: self.keep], candidates])
            pool_costs = np.concatenate([elite_costs[: self.keep], costs])
            order = np.argsort(pool_costs, kind="stable")[: self.elites]
            elites, elite_costs = pool[order], pool_costs[order]

            spread = elites.std(axis=0, ddof=1)
            mean = self.momentum * mean + (1 - self.momentum) * elites.mean(axis=0)
            centres = mean[None]
            std = np.maximum(self.momentum * std + (1 - self.momentum) * spread, self.std_floor)
            if spread.max() < self.agree or late():
                break

        return Found(mean[None] if self.answer == "mean" else np.stack([mean, elites[0]]), elites)
