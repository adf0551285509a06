"""One episode as a stream of records, one for each control step; everything that shows or measures reads these.

    episode = Episode(task, ModelAgent(model, planner), pair.start, pair.goal, seed=0, pair=3)
    for step in episode:
        print(step.step, step.distance, step.success)

The world waits for the planner, so nothing depends on the clock. Between two records a caller may `push` the thing that
the goal is about, `aim` at another goal, or change the agent's planner.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent.episodes.agents import Agent, Thought
from agent.episodes.disturbance import Disturbance
from envs import OFFSET, BadInput, Task

STEPS = 2 * OFFSET
"""Control steps of an episode: twice what the data policy took from start to goal."""


@dataclass(frozen=True)
class Step:
    """The world before an action, what the agent made of it, and the action that it takes."""

    task: str
    agent: str
    seed: int
    pair: int
    step: int
    """0 at the start; the last record, `step == limit`, has no action."""
    limit: int
    state: np.ndarray
    """`(S,)`"""
    goal: np.ndarray
    """`(S,)`"""
    observation: np.ndarray | None
    """The picture that the agent saw, uint8 `(size, size, 3)`; None when it saw none."""
    action: np.ndarray | None
    """`(A,)`"""
    success: bool
    distance: float
    """In the task's unit."""
    first_hit: int | None
    """The first step with success, this one included."""
    thought: Thought
    new_plan: bool = False
    """Whether the plan in force is used for the first time."""
    pushed: np.ndarray | None = None
    """How far the thing was pushed since the last record, over the task's `movable`."""
    ms: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds since the last record: `simulate`, `draw`, `encode`, `plan`."""
    clock: "Clock | None" = None
    """How planning kept up with the clock; None in lockstep."""


@dataclass(frozen=True)
class Clock:
    """How planning keeps up when the world does not wait."""

    misses: int
    """Plans that came too late to be used, so far."""
    plan_age_ms: float | None
    """How old the observation is that the plan in force was made from."""
    reaction_ms: float | None
    """From that observation to the first action that follows from it."""
    lag_ms: float
    """How far this step began behind its time."""


class Episode:
    """An agent at work in a task from a start state towards a goal state; iterate over it for its records."""

    def __init__(
        self,
        task: Task,
        agent: Agent,
        start: Any,
        goal: Any,
        seed: int = 0,
        pair: int = 0,
        steps: int = STEPS,
        disturb: Disturbance | None = None,
        look_every: int = 1,
    ):
        """`look_every` above 1 spares pictures between the steps at which the agent plans; records then lack them."""
        if steps < 1:
            raise BadInput(f"an episode has at least 1 step, got {steps}")
        size = getattr(getattr(agent, "model", None), "image_size", task.size)
        if agent.sees == "pixels" and size != task.size:
            raise BadInput(
                f"the model sees pictures of side {size}, the task draws {task.size}: make it with size={size}"
            )
        self.task, self.agent, self.steps = task, agent, steps
        self.seed, self.pair, self._disturb, self._look_every = seed, pair, disturb, look_every
        task.set_state(start)
        self.state = task.state()
        self.step = 0
        self.first_hit: int | None = None
        self._pushed: np.ndarray | None = None
        self._ms: dict[str, float] = {}
        agent.begin(task, seed, pair)
        self.aim(goal)

    def __iter__(self) -> Iterator[Step]:
        return (records[0] for records in together([self]))

    def aim(self, goal: Any) -> None:
        """Pursue another goal state from now on."""
        self.task.set_goal(goal)
        self.goal = self.task.goal.copy()
        self.first_hit = None
        self.agent.aim(self._observe(self.goal))

    def push(self, displacement: Any) -> None:
        """Move the thing that the goal is about by `displacement` `(M,)`, over the task's `movable`."""
        displacement = np.asarray(displacement, np.float64)
        state = self.state.copy()
        state[list(self.task.movable)] += displacement
        self.task.set_state(state)  # checks it
        self.state = state
        self._pushed = displacement if self._pushed is None else self._pushed + displacement

    # ---- one control step, in the order in which it happens --------------------------------------------------------

    def look(self) -> None:
        """Show the agent where things are."""
        started = time.perf_counter()
        self._observation = self._observe(self.state) if self.step % self._look_every == 0 else None
        drawn = time.perf_counter()
        self.agent.see(self.step, self._observation)
        self._ms |= {"draw": 1e3 * (drawn - started), "encode": 1e3 * (time.perf_counter() - drawn)}
        if self.first_hit is None and self.task.success(self.state, self.goal):
            self.first_hit = self.step

    def record(self, new_plan: bool = False, plan_ms: float | None = None, clock: Clock | None = None) -> Step:
        """What there is to know about this step; the agent decides on its action here."""
        if plan_ms is not None:
            self._ms["plan"] = plan_ms
        if self.step < self.steps:
            self._action = np.clip(self.agent.act(), -1, 1)
        step = Step(
            task=self.task.name,
            agent=self.agent.name,
            seed=self.seed,
            pair=self.pair,
            step=self.step,
            limit=self.steps,
            state=self.state.copy(),
            goal=self.goal.copy(),
            observation=self._observation if self.agent.sees == "pixels" else None,
            action=self._action if self.step < self.steps else None,
            success=bool(self.task.success(self.state, self.goal)),
            distance=float(self.task.distance(self.state, self.goal)),
            first_hit=self.first_hit,
            thought=self.agent.thought,
            new_plan=new_plan,
            pushed=self._pushed,
            ms=dict(self._ms),
            clock=clock,
        )
        self._pushed = None
        return step

    def advance(self) -> None:
        """Let one control step pass."""
        started = time.perf_counter()
        if (
            self._disturb
            and (push := self._disturb(self.task, self.state, self.seed, self.pair, self.step)) is not None
        ):
            self.push(push)
        self.state = self.task.advance(self.state, self._action)
        self.step += 1
        self._ms = {"simulate": 1e3 * (time.perf_counter() - started)}

    def _observe(self, state: np.ndarray) -> np.ndarray:
        return self.task.draw(state) if self.agent.sees == "pixels" else state


def together(episodes: Sequence[Episode]) -> Iterator[list[Step]]:
    """Run episodes of the same model, planner and length side by side; yields one record of each at every step.

    The plans that are due at a step come from one call of the planner, so their candidates share rollouts. Each
    episode's plans are those it would get alone (up to rounding, where a model's arithmetic depends on its batch).
    """
    while True:
        for episode in episodes:
            episode.look()
        problems = {n: p for n, e in enumerate(episodes) if e.step < e.steps and (p := e.agent.problem()) is not None}
        each_ms = None
        if problems:
            agent: Any = episodes[0].agent
            started = time.perf_counter()
            deadline = None if agent.plan_ms is None else started + agent.plan_ms / 1e3
            plans = agent.planner(agent.model, list(problems.values()), deadline)
            for number, plan in zip(problems, plans, strict=True):
                episodes[number].agent.accept(plan)
            each_ms = 1e3 * (time.perf_counter() - started) / len(problems)
        planned = (number in problems for number in range(len(episodes)))
        yield [e.record(new, each_ms if new else None) for e, new in zip(episodes, planned, strict=True)]
        if episodes[0].step == episodes[0].steps:
            return
        for episode in episodes:
            episode.advance()
