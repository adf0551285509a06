"""The same episode against the clock: the task keeps its control rate and the planner works in its own thread.

A plan takes time, so the actions until it is ready are committed beforehand and every plan begins with them. A plan
that is not ready in time is missed and the old one goes on; where no plan reaches, the agent does nothing (zeros).
"""

import math
import time
from collections import deque
from collections.abc import Iterator

import numpy as np

from agent.episodes.agents import PLAN_SPACE, Thought, check_fit, context_of
from agent.episodes.episode import Clock, Episode, Step
from agent.episodes.planner_thread import PlannerThread, Request, Timed
from agent.planning.base import Planner
from agent.world_models.base import WorldModel, latent_distance

MARGIN = 0.9
"""Share of its time that a planner may use; the rest is for threads to wake up."""
REHEARSALS = 2
"""The first opens what a plan needs, the next tells how long one takes."""
FORGET = 0.9
"""How much of the longest plan's time is still expected of the next."""


class RealtimeAgent:
    """Acts by the newest plan that was ready in time; for episodes that are run by `realtime`.

    It asks for a plan every `planner.replan` blocks, as in lockstep, and carries it out as many steps later as plans
    have lately taken. They may take `plan_ms`, or the time of one action block; a planner that overruns is given more
    steps the next time. `planning` may be switched off between steps.
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
        reach = (self.model.history - 1) * self.model.action_block
        self._seed, self._pair, self._step_s = seed, pair, 1 / task.control_hz
        self._budget_s = self.model.action_block * self._step_s if self.plan_ms is None else self.plan_ms / 1e3
        self._expected_s = self._budget_s
        self._observations: deque[np.ndarray] = deque(maxlen=reach + 1)
        self._past: deque[np.ndarray] = deque(maxlen=max(reach, 1))
        self._ahead: dict[int, np.ndarray] = {}  # step to the action committed for it
        self._waiting: list[Timed] = []  # plans that have not started, by their start
        self._asked_at, self._asked_for = -math.inf, -1  # when the last plan was asked for, and from which step on
        self._newest: Timed | None = None
        self.in_force: Timed | None = None
        self.new_plan, self.misses = False, 0
        self.close()

    def aim(self, goal):
        self._goal = self.model.encode(goal[None])[0]
        self._drop()
        if self._thread is None:
            self._thread = PlannerThread(self.model)
            self._rehearse(self._thread, goal)

    def see(self, step, observation):
        assert self._thread is not None, "aim comes first"
        self._step = step
        self._observations.append(observation)
        if (timed := self._thread.collect()) is not None:
            self._schedule(timed)
        elif self._asked_for == step:
            self.misses += 1
        self.new_plan = False
        while self._waiting and self._waiting[0].start <= step:
            self.in_force, self.new_plan = self._waiting.pop(0), True
        carried_out = 1 if getattr(self.planner, "every_step", False) else self.planner.replan * self.model.action_block
        if not self.planning:
            self._drop()
        elif self._thread.idle and step - self._asked_at >= carried_out:
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

    def _drop(self) -> None:
        """Forget all plans, and ask for one as soon as possible."""
        self._ahead, self._waiting, self.in_force = {}, [], None
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

    def _schedule(self, timed: Timed) -> None:
        """Commit to a plan from its start on, unless that moment has passed."""
        self._asked_for = -1  # it came, be it too late
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
        rest = np.zeros(self.model.action_dim, np.float32)
        return self._ahead.get(step, np.clip(rest, self.model.action_low, self.model.action_high))

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
        observations, past = context_of(self.model, self.planner.context, self._observations, self._past)
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

    def _think(self) -> None:
        latent = self._newest.latent if self._newest else None
        distance = None if latent is None else float(latent_distance(self.model, latent, self._goal))
        plan, begin = (self.in_force.plan, self.in_force.begin) if self.in_force else (None, None)
        self.thought = Thought(latent, self._goal, distance, plan, begin)


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
