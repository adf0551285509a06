"""What has happened so far, as the window shows it: fed with the records of episodes, in turn."""

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from agent.episodes.episode import Step
from agent.episodes.outcome import percentile
from agent.evaluation.statistics import Rate
from agent.planning.base import Plan

RECENT_LATENTS, RECENT_PLANS = 256, 200


class Mark(NamedTuple):
    """One step of the current episode in the plot of distances."""

    step: int
    distance: float
    success: bool
    pushed: bool


class Prediction(NamedTuple):
    """What a plan expected: distances `(H+1,)` at `steps` `(H+1,)`, the first of them measured."""

    steps: np.ndarray
    distances: np.ndarray


class HudState:
    """The records of the current episode in short, and what lasts across episodes."""

    def __init__(self, action_dim: int):
        self.action_dim = action_dim
        self.record: Step | None = None
        self.marks: list[Mark] = []
        self.predictions: list[Prediction] = []
        self.latents: deque[np.ndarray] = deque(maxlen=RECENT_LATENTS)
        self.results: dict[int, bool] = {}
        """Pair to whether its goal was reached; an episode that a person changed does not count."""
        self._plan_ms: deque[float] = deque(maxlen=RECENT_PLANS)
        self._by_hand = False
        self._plan: Plan | None = None
        self._latent: np.ndarray | None = None

    def add(self, record: Step) -> None:
        """Take note of one record; step 0 begins an episode."""
        if record.step == 0:
            self.marks, self.predictions = [], []
            self._plan = None
            self._by_hand = False
        elif self.record is not None and not np.array_equal(record.goal, self.record.goal):
            self.predictions, self._by_hand = [], True
        self._by_hand |= record.pushed is not None
        self.record = record
        thought = record.thought
        self.marks.append(Mark(record.step, plotted_distance(record), record.success, record.pushed is not None))
        if thought.latent is not None and thought.latent is not self._latent:
            self.latents.append(thought.latent)
            self._latent = thought.latent
        if thought.plan is not None and thought.plan is not self._plan:
            self.predictions.append(_prediction(record, thought.plan, self.block(thought.plan)))
            self._plan = thought.plan
        if record.plan_ms is not None:
            self._plan_ms.append(record.plan_ms)
        if record.step == record.limit and not self._by_hand:
            self.results[record.pair] = record.first_hit is not None

    def block(self, plan: Plan) -> int:
        """Actions in one block of a plan."""
        return plan.actions.shape[1] // self.action_dim

    @property
    def rate(self) -> Rate:
        """How many goals were reached."""
        return Rate.of(list(self.results.values()))

    def plan_ms(self, percent: float) -> float | None:
        """A percentile of the recent plans' milliseconds."""
        return percentile(list(self._plan_ms), percent)

    @property
    def plans_per_second(self) -> float | None:
        """How many plans such as the recent ones there is time for."""
        return 1e3 * len(self._plan_ms) / sum(self._plan_ms) if self._plan_ms else None


def plotted_distance(record: Step) -> float:
    """The Euclidean distance of the latents, or without latents the task's own."""
    squared = record.thought.latent_distance
    return record.distance if squared is None else math.sqrt(squared)


def _prediction(record: Step, plan: Plan, block: int) -> Prediction:
    start = record.step if record.thought.planned_at is None else record.thought.planned_at
    steps = start + block * np.arange(len(plan.distances) + 1)
    return Prediction(steps, np.concatenate([[plotted_distance(record)], np.sqrt(plan.distances)]))
