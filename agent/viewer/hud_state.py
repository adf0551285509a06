"""What has happened so far, as the window shows it: fed with the records of episodes, in turn."""

import copy
import math
from collections import defaultdict, deque
from typing import NamedTuple

import numpy as np

from agent.episodes.episode import Step
from agent.episodes.outcome import percentile
from agent.evaluation.statistics import Rate
from agent.planning.base import Plan, Planner

RECENT_LATENTS, RECENT_PLANS = 256, 200


class Mark(NamedTuple):
    """One step of the current episode in the plot of distances."""

    step: int
    distance: float | None
    """None before an agent with a world model has encoded anything."""
    success: bool
    pushed: bool


class Prediction(NamedTuple):
    """What a plan expected: distances `(H+1,)` at `steps` `(H+1,)`, the first of them measured."""

    known: int
    """The step at which the plan came into force."""
    steps: np.ndarray
    distances: np.ndarray


class HudState:
    """The records of the current episode, and what lasts across episodes.

    Success and times of plans belong to the planner that made the plans: those of the newest plan's are told.
    """

    def __init__(self, action_dim: int):
        self.action_dim = action_dim
        self.record: Step | None = None
        self.history: list[Step] = []
        """The records of this episode."""
        self.marks: list[Mark] = []
        self.predictions: list[Prediction] = []
        self.latents: deque[np.ndarray] = deque(maxlen=RECENT_LATENTS)
        self.planner: Planner | None = None
        """Who made the newest plan; None for a rule."""
        self._results: defaultdict[Planner | None, dict[int, bool]] = defaultdict(dict)
        self._plan_ms: defaultdict[Planner | None, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT_PLANS))
        self._by_hand = False
        self._plan: Plan | None = None
        self._latent: np.ndarray | None = None

    def add(self, record: Step) -> None:
        """Take note of one record; step 0 begins an episode."""
        thought = record.thought
        if record.step == 0:
            self.history, self.marks, self.predictions = [], [], []
            self._plan = None
            self._by_hand = False
        elif self.record is not None and not np.array_equal(record.goal, self.record.goal):
            self.predictions, self._by_hand = [], True
        self._by_hand |= record.pushed is not None
        self.record = record
        self.history.append(record)
        self.marks.append(Mark(record.step, plotted_distance(record), record.success, record.pushed is not None))
        if thought.latent is not None and thought.latent is not self._latent:
            self.latents.append(thought.latent)
            self._latent = thought.latent
        if thought.plan is not None and thought.plan is not self._plan:
            self.predictions.append(_prediction(record, thought.plan, self.block(thought.plan)))
            self._by_hand |= self._plan is not None and thought.planner != self.planner
            self._plan, self.planner = thought.plan, thought.planner
        if record.plan_ms is not None:
            self._plan_ms[self.planner].append(record.plan_ms)
        if record.step == record.limit and not self._by_hand:
            self._results[self.planner][record.pair] = record.first_hit is not None

    def as_of(self, index: int) -> "HudState":
        """The same when the record `index` of this episode was the newest."""
        past = copy.copy(self)
        past.record = record = self.history[index]
        past.history, past.marks = self.history[: index + 1], self.marks[: index + 1]
        past.predictions = [prediction for prediction in self.predictions if prediction.known <= record.step]
        return past

    def block(self, plan: Plan) -> int:
        """Actions in one block of a plan."""
        return plan.actions.shape[1] // self.action_dim

    @property
    def results(self) -> dict[int, bool]:
        """Pair to whether its goal was reached with this planner.

        An episode that a person changed, or in which the planner changed, does not count.
        """
        return self._results[self.planner]

    @property
    def rate(self) -> Rate:
        """How many goals were reached with this planner."""
        return Rate.of(list(self.results.values()))

    @property
    def rates(self) -> list[tuple[Planner | None, Rate]]:
        """The same for every planner that finished an episode."""
        return [(planner, Rate.of(list(results.values()))) for planner, results in self._results.items() if results]

    def plan_ms(self, percent: float) -> float | None:
        """A percentile of the milliseconds of this planner's recent plans."""
        return percentile(list(self._plan_ms[self.planner]), percent)

    @property
    def plans_per_second(self) -> float | None:
        """How many plans such as its recent ones there is time for."""
        times = self._plan_ms[self.planner]
        return 1e3 * len(times) / sum(times) if times else None


def plotted_distance(record: Step) -> float | None:
    """The Euclidean distance of the latents, or for an agent without a world model the task's own."""
    if record.thought.goal_latent is None:
        return record.distance
    squared = record.thought.latent_distance
    return None if squared is None else math.sqrt(squared)


def arrival(plan: Plan) -> int:
    """The block of a plan at which its planner wants to arrive: the last if its cost is that of the last, else the
    nearest to the goal."""
    return len(plan.distances) - 1 if plan.cost == plan.distances[-1] else int(np.argmin(plan.distances))


def _prediction(record: Step, plan: Plan, block: int) -> Prediction:
    start = record.step if record.thought.planned_at is None else record.thought.planned_at
    measured = plotted_distance(record)
    distances = np.concatenate([[math.nan if measured is None else measured], np.sqrt(plan.distances)])
    known = slice(1, None) if measured is None else slice(None)
    return Prediction(record.step, (start + block * np.arange(len(distances)))[known], distances[known])
