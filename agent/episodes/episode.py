"""One episode as a stream of records, one for each control step; everything that shows or measures reads these.

    episode = Episode(task, ModelAgent(model, planner), pair.start, pair.goal, seed=0, pair=3)
    for step in episode:
        print(step.step, step.distance, step.success)

The world waits for the planner, so nothing depends on the clock. Between two records a caller may `push` the goal
object, `aim` at another goal, or change the agent's planner.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent.episodes.agents import Agent, Thought, plan_together
from agent.episodes.disturbance import Push
from envs import OFFSET, BadInput, Task

STEPS = 2 * OFFSET
"""Control steps of an episode: twice what the data policy took from start to goal."""


@dataclass(frozen=True)
class Clock:
    """How planning keeps up when the world does not wait."""

    plan_age_ms: float | None
    """How old the observation is that the plan in force was made from."""
    reaction_ms: float | None
    """From that observation to the first action that follows from it."""
    lag_ms: float
    """How far this step began behind its time."""


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
    plan_ms: float | None = None
    """How long the plan in force took, where it is used for the first time."""
    misses: int = 0
    """Plans that missed their deadline, so far; against the clock they came too late to be used."""
    pushed: np.ndarray | None = None
    """How far the goal object was pushed since the last record, over the task's `movable`."""
    clock: Clock | None = None
    """How planning kept up with the clock; None in lockstep."""

    @property
    def new_plan(self) -> bool:
        """Whether the plan in force is used for the first time."""
        return self.plan_ms is not None


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
        disturb: Push | None = None,
        look_every: int = 1,
    ):
        """`look_every` above 1 spares the pictures in between that the agent can do without; records then lack them."""
        if steps < 1:
            raise BadInput(f"an episode has at least 1 step, got {steps}")
        if agent.sees == "pixels" and agent.model is not None and (size := agent.model.image_size) != task.size:
            raise BadInput(
                f"the model sees pictures of side {size}, the task draws {task.size}: make it with size={size}"
            )
        self.task = task
        self.agent = agent
        self.seed = seed
        self.pair = pair
        self.steps = steps
        self.step = 0
        self.first_hit: int | None = None
        self._disturb = disturb
        self._look_every = look_every
        self._pushed: np.ndarray | None = None
        task.set_state(start)
        self.state = task.state()
        agent.begin(task, seed, pair)
        self.aim(goal)

    def __iter__(self) -> Generator[Step, None, None]:
        return (records[0] for records in together([self]))

    def aim(self, goal: Any) -> None:
        """Pursue another goal state from now on."""
        self.task.set_goal(goal)
        self.goal = self.task.goal.copy()
        self.first_hit = None
        self.agent.aim(self._observe(self.goal))

    def push(self, displacement: Any) -> None:
        """Move the goal object by `displacement` `(M,)`, over the task's `movable`."""
        displacement = np.asarray(displacement, np.float64)
        state = self.state.copy()
        state[list(self.task.movable)] += displacement
        self.task.set_state(state)  # checks it
        self.state = state
        self._pushed = displacement if self._pushed is None else self._pushed + displacement

    # ---- one control step, in the order in which it happens --------------------------------------------------------

    def look(self) -> None:
        """Show the agent where things are."""
        looks = self.step % self._look_every == 0 or self.agent.must_see(self.step)
        self._observation = self._observe(self.state) if looks else None
        self.agent.see(self.step, self._observation)
        if self.first_hit is None and self.task.success(self.state, self.goal):
            self.first_hit = self.step

    def record(self, clock: Clock | None = None) -> Step:
        """What there is to know about this step; the agent decides on its action here."""
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
            plan_ms=self.agent.new_plan_ms,
            misses=self.agent.misses,
            pushed=self._pushed,
            clock=clock,
        )
        self._pushed = None
        return step

    def advance(self) -> None:
        """Let one control step pass."""
        if self._disturb:
            push = self._disturb(self.task, self.state, self.seed, self.pair, self.step)
            if push is not None:
                self.push(push)
        self.state = self.task.advance(self.state, self._action)
        self.step += 1

    def _observe(self, state: np.ndarray) -> np.ndarray:
        return self.task.draw(state) if self.agent.sees == "pixels" else state


def together(episodes: Sequence[Episode]) -> Generator[list[Step], None, None]:
    """Run episodes of the same model, planner and length side by side; yields one record of each at every step.

    The plans that are due at a step come from one call of the planner. Each episode's plans are those it would get
    alone (up to rounding, where a model's arithmetic depends on its batch).
    """
    while True:
        for episode in episodes:
            episode.look()
        plan_together(episode.agent for episode in episodes if episode.step < episode.steps)
        yield [episode.record() for episode in episodes]
        if episodes[0].step == episodes[0].steps:
            return
        for episode in episodes:
            episode.advance()
