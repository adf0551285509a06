"""The cross-entropy method as LeWM publishes it."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agent.planning.base import Plan, Problem
from agent.planning.cem import CEM
from agent.planning.search_space import SearchSpace, box
from agent.world_models.base import WorldModel


@dataclass(frozen=True)
class LeWM(CEM):
    """Two open-loop plans an episode: the cost is that of the last block, and all 5 blocks are carried out.

    Published code lets candidates leave the task's box and leaves it to the task to cut actions off; `clamp=false` does
    the same.
    """

    candidates: int = 300
    elites: int = 30
    iterations: int = 30
    replan: int = 5
    std_floor: float = 0.0
    momentum: float = 0.0
    keep: int = 0
    colour: float = 0.0
    clamp: bool = True
    """Keep candidates in the task's box while searching."""

    name: ClassVar[str] = "lewm"

    def space(self, model: WorldModel, problem: Problem) -> SearchSpace:
        space = super().space(model, problem)
        if self.clamp:
            return space
        return dataclasses.replace(space, low=np.full(space.shape, -np.inf), high=np.full(space.shape, np.inf))

    def __call__(self, model: WorldModel, problems: Sequence[Problem], deadline: float | None = None) -> list[Plan]:
        plans = super().__call__(model, problems, deadline)
        boxes = [box(model, self.horizon, problem.committed) for problem in problems]
        return [
            dataclasses.replace(plan, actions=np.clip(plan.actions, *bounds).astype(np.float32))
            for plan, bounds in zip(plans, boxes, strict=True)
        ]
