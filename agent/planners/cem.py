"""The cross-entropy method, as LeWM publishes it and with what iCEM adds."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from agent.planners.sampling import Found, SamplingPlanner
from envs import BadInput


@dataclass(frozen=True)
class CEM(SamplingPlanner):
    """Sample candidates around a mean, keep the elites, move the mean and the spread to them, repeat."""

    elites: int = 10
    """Best candidates that decide where the next iteration samples."""
    std: float = 1.0
    """First spread, in standard deviations of the training actions."""
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
    """The last mean, or the best of all that were tried, that mean included."""

    name: ClassVar[str] = "cem"

    def __post_init__(self):
        super().__post_init__()
        if not 2 <= self.elites <= self.candidates:
            raise BadInput(f"elites must lie between 2 and the {self.candidates} candidates, got {self.elites}")
        if not 0 <= self.keep <= self.elites:
            raise BadInput(f"keep must lie between 0 and the {self.elites} elites, got {self.keep}")
        if not (0 <= self.momentum < 1 and self.std > 0 and min(self.std_floor, self.colour, self.agree) >= 0):
            raise BadInput("CEM needs 0 <= momentum < 1, std > 0, and std_floor, colour and agree not below 0")
        if self.answer not in ("mean", "best"):
            raise BadInput(f"answer of CEM is mean or best, got {self.answer!r}")

    def search(self, space, problem, late):
        mean = space.start(problem.warm_start)
        std = np.full(space.shape, self.std)
        elites, elite_costs = np.empty((0, *space.shape)), np.empty(0)

        for _ in range(self.iterations):
            candidates = space.clamp(mean + std * space.noise(problem.rng, self.candidates, self.colour))
            candidates[0] = mean
            costs = yield candidates

            pool = np.concatenate([elites[: self.keep], candidates])
            pool_costs = np.concatenate([elite_costs[: self.keep], costs])
            order = np.argsort(pool_costs, kind="stable")[: self.elites]
            elites, elite_costs = pool[order], pool_costs[order]

            spread = elites.std(axis=0, ddof=1)
            mean = self.momentum * mean + (1 - self.momentum) * elites.mean(axis=0)
            std = np.maximum(self.momentum * std + (1 - self.momentum) * spread, self.std_floor)
            if spread.max() < self.agree or late():
                break

        if self.answer == "best":
            cost = yield mean[None]
            return Found(mean if cost[0] <= elite_costs[0] else elites[0], elites)
        return Found(mean, elites)


def lewm(**settings: Any) -> CEM:
    """CEM as LeWM publishes it: 300 candidates, 30 elites, 30 iterations, a whole plan of 5 blocks carried out.

    Candidates stay in the task's box here, which published code leaves to the tasks.
    """
    published: dict[str, Any] = {"candidates": 300, "elites": 30, "iterations": 30, "horizon": 5, "replan": 5}
    published |= {"std": 1.0, "std_floor": 0.0, "momentum": 0.0, "keep": 0, "colour": 0.0, "agree": 0.0}
    return CEM(**(published | {"answer": "mean", "cost": "terminal", "context": 1} | settings))
