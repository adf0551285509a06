"""Random shooting: the yardstick that every cleverer search has to beat."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agent.planning.base import Problem
from agent.planning.rollouts import Found, SamplingPlanner, Search
from agent.planning.search_space import SearchSpace


@dataclass(frozen=True)
class Shooting(SamplingPlanner):
    """Try candidates from the spread of the training actions and carry out the best."""

    colour: float = 1.0
    """Colour of the noise along a plan: 0 white, 1 pink, 2 red."""

    name: ClassVar[str] = "shooting"
    SHOWN: ClassVar[int] = 10

    def search(self, space: SearchSpace, problem: Problem, late: Callable[[], bool]) -> Search:
        best, best_costs = np.empty((0, *space.shape)), np.empty(0)

        for _ in range(self.iterations):
            candidates = space.clamp(space.noise(problem.rng, self.candidates, self.colour))
            if not len(best):
                candidates[0] = space.start(problem.warm_start)
            costs = yield candidates

            pool, pool_costs = np.concatenate([best, candidates]), np.concatenate([best_costs, costs])
            order = np.argsort(pool_costs, kind="stable")[: self.SHOWN]
            best, best_costs = pool[order], pool_costs[order]
            if late():
                break

        return Found(best[:1], best)
