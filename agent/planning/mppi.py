"""Model-predictive path integral control: every candidate counts, the cheaper the more."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agent.planning.base import Problem
from agent.planning.rollouts import Found, SamplingPlanner, Search
from agent.planning.search_space import SearchSpace


@dataclass(frozen=True)
class MPPI(SamplingPlanner):
    """Sample candidates around a mean and move it to their average, weighted by `exp(-cost / temperature)`."""

    std: float = 1.0
    """First spread, in standard deviations of the training actions."""
    std_floor: float = 0.1
    """The spread follows the weighted candidates but never falls below this."""
    temperature: float = 0.1
    """In units of the mean cost above the least, so that it means the same for every model."""
    colour: float = 1.0
    """Colour of the noise along a plan: 0 white, 1 pink, 2 red."""

    name: ClassVar[str] = "mppi"
    SHOWN: ClassVar[int] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.std > 0 and self.temperature > 0 and self.std_floor >= 0 and self.colour >= 0):
            raise ValueError("MPPI needs std and temperature above 0, and std_floor and colour not below 0")

    def search(self, space: SearchSpace, problem: Problem, late: Callable[[], bool]) -> Search:
        mean = space.start(problem.warm_start)
        std = np.full(space.shape, self.std)

        for _ in range(self.iterations):
            candidates = space.clamp(mean + std * space.noise(problem.rng, self.candidates, self.colour))
            candidates[0] = mean
            costs = yield candidates

            above = costs - costs.min()
            weights = np.exp(-above / (self.temperature * max(above.mean(), 1e-12)))
            weights /= weights.sum()
            mean = np.tensordot(weights, candidates, axes=1)
            std = np.sqrt(np.tensordot(weights, (candidates - mean) ** 2, axes=1))
            std = np.maximum(std, self.std_floor)
            if late():
                break

        return Found(mean[None], candidates[np.argsort(costs, kind="stable")[: self.SHOWN]])
