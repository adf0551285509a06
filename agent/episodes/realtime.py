"""The same episode against the clock: the task keeps its control rate and the planner works in its own thread.

A plan takes time, so the actions until it is ready are committed beforehand and every plan begins with them. A plan
that is not ready in time is missed and the old one goes on; where no plan reaches, the agent does nothing (zeros).
"""

import math
import time
from collections.abc import Generator

import numpy as np

from agent.episodes.agents import PLAN_SPACE, PlanningAgent, context_of
from agent.episodes.episode import Clock, Episode, Step
from agent.episodes.planner_thread import PlannerThread, Request, Timed
from agent.planning.base import Planner
from agent.world_models.base import WorldModel
from envs import Task

MARGIN = 0.9
"""Share of its time that a planner may use; the rest is for threads to wake up."""
REHEARSALS = 2
"""The first opens what a plan needs, the next tells how long one takes."""
FORGET = 0.9
"""How much of the longest plan's time is still expected of the next."""


class RealtimeAgent(PlanningAgent):
    """Acts by the newest plan that was ready in time; for episodes that are run by `realtime`.

    It asks for a plan every `planner.replan` blocks, as in lockstep, and carries it out as many steps later as plans
    have lately taken. They may take `plan_ms`, or the time of one action block; a planner that overruns is given more
    steps the next time.
    """

    def __init__(self, model: WorldModel, planner: Planner, plan_ms: float | None = None):
        super().__init__(model, planner, plan_ms)
        self._thread: PlannerThread | None = None

    def begin(self, task: Task, seed: int, pair: int) -> None:
        super().begin(task, seed, pair)
        self._step_s = 1 / task.control_hz
        self._expected_s = self._budget_s
        self._ahead: dict[int, np.ndarray] = {}  # step to the action committed for it
        self._waiting: list[Timed] = []  # plans that have not started, by their start
        self._asked_at = -math.inf  # when the last plan was asked for
        self._asked_for = -1  # and from which step on
        self._newest: Timed | None = None
        self._in_force: Timed | None = None
        self.close()

    def aim(self, goal: np.ndarray) -> None:
        super().aim(goal)
        self._drop()
        if self._thread is None:
            self._thread = PlannerThread(self.model)
            self._rehearse(self._thread, goal)

    def must_see(self, step: int) -> bool:
        return True

    def see(self, step: int, observation: np.ndarray | None) -> None:
        assert self._thread is not None, "aim comes first"
        self._step = step
        self._seen.append(observation)
        if (timed := self._thread.collect()) is not None:
            self._schedule(timed)
        elif self._asked_for == step:
            self.misses += 1
        self.new_plan_ms = None
        while self._waiting and self._waiting[0].start <= step:
            self._in_force = self._waiting.pop(0)
            self.new_plan_ms = self._in_force.ms
        if not self.planning:
            self._drop()
        elif self._thread.idle and step - self._asked_at >= self._steps_per_plan:
            self._thread.submit(self.planner, self._request())
        latent = self._newest.latent if self._newest else None
        if self._in_force is None:
            self._think(latent, None, None, None)
        else:
            self._think(latent, self._in_force.plan, self._in_force.begin, self._in_force.planner)

    def clock(self, lag_ms: float) -> Clock:
        """How planning keeps up, for the record of this step."""
        if self._in_force is None:
            return Clock(None, None, lag_ms)
        age_ms = 1e3 * (time.perf_counter() - self._in_force.seen_at)
        if self.new_plan_ms is not None:
            self._reaction_ms = age_ms
        return Clock(age_ms, self._reaction_ms, lag_ms)

    def close(self) -> None:
        """Stop the planner's thread."""
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    @property
    def _budget_s(self) -> float:
        """How long a plan may take."""
        return self.model.action_block * self._step_s if self.plan_ms is None else self.plan_ms / 1e3

    def _drop(self) -> None:
        """Forget all plans, and ask for one as soon as possible."""
        self._ahead = {}
        self._waiting = []
        self._in_force = None
        self.new_plan_ms = None
        self._asked_at = -math.inf

    def _rehearse(self, thread: PlannerThread, goal: np.ndarray) -> None:
        """Plan from the goal to the goal before the clock runs; a planner that does not come back is missed."""
        block = self.model.action_block
        for _ in range(REHEARSALS):
            now = time.perf_counter()
            request = Request(
                step=-1,
                seen_at=now,
                deadline=now + MARGIN * self._budget_s,
                observations=np.stack([goal] * self.planner.context),
                past_actions=np.zeros((self.planner.context - 1, block * self.model.action_dim), np.float32),
                committed=np.zeros((0, self.model.action_dim), np.float32),
                leftover=np.zeros((0, block * self.model.action_dim), np.float32),
                goal=self._goal,
                rng=np.random.default_rng([PLAN_SPACE, self._seed, self._pair]),
            )
            thread.submit(self.planner, request)
            if (timed := thread.collect(self._budget_s)) is None:
                self._asked_for = 0
                return
            self._expected_s = timed.ms / 1e3
            self._check_floor(timed)

    def _check_floor(self, timed: Timed) -> None:
        """Warn once if even a plan that was cut as short as can be took too long."""
        late = self.plan_ms is not None and timed.ms > self.plan_ms
        if late and timed.plan.iterations <= 1 and self.floor_ms is None:
            self.warn(timed.ms)

    def _schedule(self, timed: Timed) -> None:
        """Commit to a plan from its start on, unless that moment has passed."""
        self._asked_for = -1  # it came, be it too late
        self._check_floor(timed)
        self._expected_s = max(timed.ms / 1e3, FORGET * self._expected_s)
        if timed.goal is not self._goal or timed.start < self._step:
            self._asked_at = -math.inf
            return
        self._newest = timed
        actions = timed.plan.actions.reshape(-1, self.model.action_dim)
        planned = {timed.begin + number: action for number, action in enumerate(actions)}
        self._ahead = {step: action for step, action in self._ahead.items() if self._step <= step < timed.start}
        self._ahead |= {step: action for step, action in planned.items() if step >= timed.start}
        self._waiting = [other for other in self._waiting if other.start < timed.start] + [timed]

    def _planned(self, step: int) -> np.ndarray:
        return self._ahead.get(step, self._rest)

    def _between(self, first: int, end: int) -> np.ndarray:
        """The actions `(end - first, A)` planned for some steps."""
        planned = [self._planned(step) for step in range(first, end)]
        return np.array(planned, np.float32).reshape(end - first, self.model.action_dim)

    def _request(self) -> Request:
        """Ask for a plan that is carried out as soon as it can be expected."""
        block, now = self.model.action_block, time.perf_counter()
        lead = min(math.ceil(self._expected_s / MARGIN / self._step_s), self.model.horizon * block)
        self._asked_at, self._asked_for = self._step, self._step + lead
        begin = self._step + lead // block * block
        observations, past = context_of(self.model, self.planner.context, self._seen, self._done)
        left = max(0, max(self._ahead, default=0) + 1 - begin) // block
        return Request(
            step=self._step,
            seen_at=now,
            deadline=now + MARGIN * min(self._budget_s, lead * self._step_s),
            observations=observations,
            past_actions=past,
            committed=self._between(self._step, self._asked_for),
            leftover=self._between(begin, begin + left * block).reshape(left, block * self.model.action_dim),
            goal=self._goal,
            rng=np.random.default_rng([PLAN_SPACE, self._seed, self._pair, self._step]),
        )


def realtime(episode: Episode) -> Generator[Step, None, None]:
    """Run an episode at its task's control rate and yield its records; the agent plans in its own thread.

    A reader that takes longer than a step over a record delays the world, and `clock.lag_ms` says by how much; the
    lost time is not made up for by hurrying.
    """
    agent, period = episode.agent, 1 / episode.task.control_hz
    due = time.perf_counter()
    try:
        while True:
            now = time.perf_counter()
            lag_ms, due = 1e3 * max(0.0, now - due), max(now, due)
            episode.look()
            clock = agent.clock(lag_ms) if isinstance(agent, RealtimeAgent) else Clock(None, None, lag_ms)
            yield episode.record(clock)
            if episode.step == episode.steps:
                return
            episode.advance()
            due += period
            time.sleep(max(0.0, due - time.perf_counter()))
    finally:
        if isinstance(agent, RealtimeAgent):
            agent.close()
