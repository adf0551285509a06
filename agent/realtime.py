"""The same episode against the clock: the task keeps its control rate and the planner works in its own thread.

A plan takes time, so it is made for a later moment: the actions already committed until then are rolled through the
model, and the search starts from the latent predicted there. A plan that is not ready at its moment is missed and the
old one goes on; where no plan reaches, the agent does nothing (zeros).
"""

import math
import time
from collections import deque
from collections.abc import Iterator

import numpy as np

from agent.agents import PLAN_SPACE, Thought, check_fit, context_of
from agent.episode import Clock, Episode, Step
from agent.planner import Planner
from agent.planner_thread import PlannerThread, Request, Timed
from agent.planners.sampling import latent_distance
from agent.world_model import WorldModel

MARGIN = 0.9
"""Share of its time that a planner may use; the rest is for threads to wake up."""


class RealtimeAgent:
    """Acts by the newest plan that was ready in time; for episodes that are run by `realtime`.

    Planning may take `plan_ms`, or the time of one action block, and plans for the first block boundary after that; a
    planner that overruns is given a later start the next time. It plans as often as it can, so `planner.replan` does
    not matter here. `planning` may be switched off between steps.
    """

    name = "model"

    def __init__(self, model: WorldModel, planner: Planner, plan_ms: float | None = None):
        check_fit(model, planner)
        self.model, self.planner, self.plan_ms = model, planner, plan_ms
        self.sees = model.sees
        self.planning = True
        self.thought = Thought()
        self._thread: PlannerThread | None = None

    def begin(self, task, seed, pair):
        block, reach = self.model.action_block, (self.model.history - 1) * self.model.action_block
        self._seed, self._pair, self._block_s = seed, pair, block / task.control_hz
        self._budget_s = self._block_s if self.plan_ms is None else self.plan_ms / 1e3
        self._expected_s = self._budget_s
        self._observations: deque[np.ndarray] = deque(maxlen=reach + 1)
        self._past: deque[np.ndarray] = deque(maxlen=max(reach, 1))
        self._ahead: dict[int, np.ndarray] = {}  # step to the action committed for it
        self._waiting: list[Timed] = []  # plans that have not started, by their start
        self._asked_for: int | None = None  # the step at which the plan that is being made is to start
        self._newest: Timed | None = None
        self.in_force: Timed | None = None
        self.new_plan, self.misses = False, 0
        self.close()

    def aim(self, goal):
        self._goal = self.model.encode(goal[None])[0]
        self._ahead, self._waiting, self.in_force = {}, [], None

    def see(self, step, observation):
        self._step = step
        self._observations.append(observation)
        if self._thread is None:
            self._thread = PlannerThread(self.model)
        if (timed := self._thread.collect()) is not None:
            self._schedule(timed)
        elif self._asked_for == step:
            self.misses += 1
        self.new_plan = False
        while self._waiting and self._waiting[0].start <= step:
            self.in_force, self.new_plan = self._waiting.pop(0), True
        if not self.planning:
            self._ahead, self._waiting, self.in_force = {}, [], None
        elif self._thread.idle:
            self._thread.submit(self.planner, self._request())
        self._think()

    def problem(self):
        return None

    def accept(self, plan):
        raise NotImplementedError("plans come from the planner's own thread")

    def act(self):
        action = self._planned(self._step)
        self._past.append(action)
        return action

    def clock(self, lag_ms: float) -> Clock:
        """How planning keeps up, for the record of this step."""
        now, plan = time.perf_counter(), self.in_force
        if plan is None:
            return Clock(self.misses, None, None, lag_ms)
        if self.new_plan:
            self._reaction_ms = 1e3 * (now - plan.seen_at)
        return Clock(self.misses, 1e3 * (now - plan.seen_at), self._reaction_ms, lag_ms)

    def close(self) -> None:
        """Stop the planner's thread."""
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    def _schedule(self, timed: Timed) -> None:
        """Commit to a plan from its start on, unless that moment has passed."""
        self._newest = timed
        self._expected_s = max(timed.ms / 1e3, 0.7 * self._expected_s)
        if timed.goal is not self._goal or timed.start < self._step:
            return
        actions = timed.plan.actions.reshape(-1, self.model.action_dim)
        self._ahead = {step: action for step, action in self._ahead.items() if self._step <= step < timed.start}
        self._ahead |= {timed.start + number: action for number, action in enumerate(actions)}
        self._waiting = [other for other in self._waiting if other.start < timed.start] + [timed]

    def _planned(self, step: int) -> np.ndarray:
        rest = np.zeros(self.model.action_dim, np.float32)
        return self._ahead.get(step, np.clip(rest, self.model.action_low, self.model.action_high))

    def _request(self) -> Request:
        """Ask for a plan that starts as soon as one can be expected, a whole number of blocks from now."""
        block, now = self.model.action_block, time.perf_counter()
        lead = min(max(1, math.ceil(self._expected_s / self._block_s)), self.model.horizon)
        start = self._asked_for = self._step + lead * block
        observations, past = context_of(self.model, self.planner.context, self._observations, self._past)
        committed = np.array([self._planned(step) for step in range(self._step, start)], np.float32)
        left = max(0, max(self._ahead, default=0) + 1 - start) // block
        leftover = np.array([self._planned(start + number) for number in range(left * block)], np.float32)
        return Request(
            step=self._step,
            start=start,
            seen_at=now,
            deadline=now + MARGIN * min(self._budget_s, lead * self._block_s),
            observations=observations,
            past_actions=past,
            committed=committed.reshape(lead, -1),
            leftover=leftover.reshape(left, block * self.model.action_dim),
            goal=self._goal,
            rng=np.random.default_rng([PLAN_SPACE, self._seed, self._pair, self._step]),
        )

    def _think(self) -> None:
        latent = self._newest.latent if self._newest else None
        distance = None if latent is None else float(latent_distance(self.model, latent, self._goal))
        plan, start = (self.in_force.plan, self.in_force.start) if self.in_force else (None, None)
        self.thought = Thought(latent, self._goal, distance, plan, start)


def realtime(episode: Episode) -> Iterator[Step]:
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
            if isinstance(agent, RealtimeAgent):
                plan_ms = agent.in_force.ms if agent.in_force and agent.new_plan else None
                yield episode.record(agent.new_plan, plan_ms, agent.clock(lag_ms))
            else:
                yield episode.record(clock=Clock(0, None, None, lag_ms))
            if episode.step == episode.steps:
                return
            episode.advance()
            due += period
            time.sleep(max(0.0, due - time.perf_counter()))
    finally:
        if isinstance(agent, RealtimeAgent):
            agent.close()
