"""CEM that starts from the model's proposals, and a guard that keeps them where the search found nothing better."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from agent.planners.cem import CEM
from agent.planners.proposals import ProposingPlanner


@dataclass(frozen=True)
class Guided(ProposingPlanner, CEM):
    """A few iterations of CEM around the proposals.

    The search's answer is carried out only if the model predicts that it costs less than every plain proposal, so by
    the model's own measure a guided plan is never worse than a proposed one.
    """

    samples: int = 16
    candidates: int = 100
    iterations: int = 3
    std: float = 0.5
    std_warm: float = 0.5
    momentum: float = 0.0
    answer: Literal["mean", "best"] = "best"

    name: ClassVar[str] = "guided"

    def search(self, space, problem, late):
        found = yield from CEM.search(self, space, problem, late)
        plain = [space.start(plan) for plan in problem.guesses[: len(self.times())]]
        return found._replace(answers=np.stack([*plain, *found.answers]), proposals=len(plain))
