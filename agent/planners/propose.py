"""The model's proposals carried out as they are: plans in milliseconds, without a search."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agent.planners.proposals import ProposingPlanner
from agent.planners.sampling import Found


@dataclass(frozen=True)
class Propose(ProposingPlanner):
    """Of the proposals for several times of arrival, the one that the model predicts to cost least."""

    every_step: bool = False
    """Plan anew at every step of the task, not only after `replan` blocks."""

    name: ClassVar[str] = "propose"

    def search(self, space, problem, late):
        plans = np.stack([space.start(plan) for plan in problem.guesses])
        return Found(plans, plans, proposals=len(plans))
        yield  # a search is a generator, though this one tries no candidates
