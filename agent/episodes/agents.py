"""Who decides what to do: the contract of an agent, and agents that plan with a world model."""

import dataclasses
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from agent.planning.base import Plan, Planner, Problem, check_horizon
from agent.world_models.base import WorldModel, latent_distance
from envs import BadInput, Task

TRIES = 2  # the first plan of its kind opens what it needs
PLAN_SPACE = 0x91A4  # first word of the seeds, so that streams of different purpose never meet


@dataclass(frozen=True)
class Thought:
    """What an agent has in mind when it acts; a rule has nothing."""

    latent: np.ndarray | None = None
    """Of the newest observation `(D,)`."""
    goal_latent: np.ndarray | None = None
    latent_distance: float | None = None
    """Squared distance between the two."""
    plan: Plan | None = None
    """The plan in force."""
    planned_at: int | None = None
    """The step at which that plan began."""
    planner: Planner | None = None
    """Who made that plan."""


class Agent(Protocol):
    """Sees the world once a step and acts; what it plans with is None for a rule."""

    name: str
    sees: Literal["pixels", "state"]
    """What `see` and `aim` are given."""
    thought: Thought
    new_plan_ms: float | None
    """How long the plan took that comes into force at this step; None when none does."""
    misses: int
    """Plans of this episode that missed their deadline, so far."""
    floor_ms: float | None
    """The shortest time in which it can make a plan, once a deadline was too short for that."""

    @property
    def model(self) -> WorldModel | None: ...

    @property
    def planner(self) -> Planner | None: ...

    @property
    def planning(self) -> bool:
        """Whether it makes plans at the moment."""
        ...

    def begin(self, task: Task, seed: int, pair: int) -> None:
        """Forget the last episode; all randomness of this one comes from `seed` and `pair`."""
        ...

    def aim(self, goal: np.ndarray) -> None:
        """Pursue another goal, given as an observation."""
        ...

    def must_see(self, step: int) -> bool:
        """Whether it cannot act in `step` without an observation."""
        ...

    def see(self, step: int, observation: np.ndarray | None) -> None:
        """Look at the world before acting in `step`; None is a step that passes unseen."""
        ...

    def act(self) -> np.ndarray:
        """The action `(A,)` of this step."""
        ...


class PlanningAgent(ABC):
    """What agents with a world model share; when plans are made is up to the kinds of it.

    `planner` may be exchanged and `planning` switched off between steps; without a plan it does nothing (zeros).
    """

    name = "model"

    def __init__(self, model: WorldModel, planner: Planner, plan_ms: float | None = None):
        """`plan_ms` bounds the time of a plan."""
        check_fit(model, planner)
        self.model = model
        self.planner = planner
        self.plan_ms = plan_ms
        self.planning = True
        self.sees = model.sees
        self.thought = Thought()
        self.new_plan_ms: float | None = None
        self.misses = 0
        self.floor_ms: float | None = None

    def begin(self, task: Task, seed: int, pair: int) -> None:
        reach = (self.model.history - 1) * self.model.action_block
        self._seed = seed
        self._pair = pair
        self._step = 0
        self._seen: deque[np.ndarray | None] = deque(maxlen=reach + 1)  # one a step, None for one that passed unseen
        self._done: deque[np.ndarray] = deque(maxlen=max(reach, 1))
        self.thought = Thought()
        self.new_plan_ms = None
        self.misses = 0

    def use(self, planner: Planner, plan_ms: float | None) -> None:
        """Make the next plans with `planner`, each in `plan_ms`."""
        check_fit(self.model, planner)
        self.planner = planner
        self.plan_ms = plan_ms
        self.floor_ms = None

    def aim(self, goal: np.ndarray) -> None:
        self._goal = self.model.encode(goal[None])[0]

    @abstractmethod
    def must_see(self, step: int) -> bool: ...

    @abstractmethod
    def see(self, step: int, observation: np.ndarray | None) -> None: ...

    def act(self) -> np.ndarray:
        action = self._planned(self._step)
        self._done.append(action)
        return action

    @abstractmethod
    def _planned(self, step: int) -> np.ndarray:
        """The action `(A,)` that is planned for a step."""

    @property
    def _rest(self) -> np.ndarray:
        """The action `(A,)` without a plan."""
        return np.clip(np.zeros(self.model.action_dim), self.model.action_low, self.model.action_high)

    @property
    def _steps_per_plan(self) -> int:
        """Steps until the next plan."""
        return 1 if self.planner.every_step else self.planner.replan * self.model.action_block

    def _think(
        self, latent: np.ndarray | None, plan: Plan | None, planned_at: int | None, planner: Planner | None
    ) -> None:
        distance = None if latent is None else float(latent_distance(self.model, latent, self._goal))
        self.thought = Thought(latent, self._goal, distance, plan, planned_at, planner)

    def warn(self, floor_ms: float) -> None:
        """Say that the time for a plan is too short for this planner."""
        self.floor_ms = floor_ms
        warnings.warn(
            f"planner {self.planner.name} cannot make a plan in {self.plan_ms:g} ms: on this machine its shortest plan "
            f"takes about {floor_ms:.2g} ms",
            stacklevel=2,
        )


class ModelAgent(PlanningAgent):
    """Is given a plan every `planner.replan` blocks (`plan_together`) and carries it out in between.

    With `plan_ms` a plan is the best found in that time, and the episode depends on the clock. A plan that takes longer
    is carried out all the same and counted in `misses`.
    """

    def aim(self, goal: np.ndarray) -> None:
        super().aim(goal)
        self._plan: Plan | None = None
        self._planned_at = 0

    def must_see(self, step: int) -> bool:
        """Whether a plan is due, which starts from what is seen."""
        return self.planning and (self._plan is None or step - self._planned_at >= self._steps_per_plan)

    def see(self, step: int, observation: np.ndarray | None) -> None:
        self._step = step
        self.new_plan_ms = None
        started = time.perf_counter()
        self._seen.append(None if observation is None else self.model.encode(observation[None])[0])
        self._encode_ms = 1e3 * (time.perf_counter() - started)
        if not self.planning:
            self._plan = None
        if observation is not None:
            self._update_thought()

    def problem(self) -> Problem | None:
        """What to plan now, if anything."""
        if not self.must_see(self._step):
            return None
        context, past_actions = context_of(self.model, self.planner.context, self._seen, self._done)
        rng = np.random.default_rng([PLAN_SPACE, self._seed, self._pair, self._step])
        return Problem(context, past_actions, self._goal, rng, self._leftover())

    def accept(self, plan: Plan, ms: float, missed: bool = False) -> None:
        """Carry out the answer to `problem`, which took `ms` and may have `missed` its deadline."""
        self._plan = dataclasses.replace(plan, ms={"encode": self._encode_ms, **plan.ms})
        self._planned_at = self._step
        self._planned_by = self.planner
        self.misses += missed
        self.new_plan_ms = ms
        self._update_thought()

    def _planned(self, step: int) -> np.ndarray:
        if self._plan is None:
            return self._rest
        return self._plan.actions.reshape(-1, self.model.action_dim)[step - self._planned_at]

    def _update_thought(self) -> None:
        if self._plan is None:
            self._think(self._seen[-1], None, None, None)
        else:
            self._think(self._seen[-1], self._plan, self._planned_at, self._planned_by)

    def _leftover(self) -> np.ndarray | None:
        """The blocks of the last plan that have not begun."""
        if self._plan is None:
            return None
        return self._plan.actions[-(-(self._step - self._planned_at) // self.model.action_block) :]


def plan_together(agents: Iterable[Agent]) -> None:
    """Give a plan to every agent that is due one, all from one call of the planner that they share.

    Their candidates then share rollouts. Agents that plan by themselves, or not at all, are left alone.
    """
    waiting = [(agent, agent.problem()) for agent in agents if isinstance(agent, ModelAgent)]
    due = [(agent, problem) for agent, problem in waiting if problem is not None]
    if not due:
        return
    first = due[0][0]
    started = time.perf_counter()
    deadline = None if first.plan_ms is None else started + first.plan_ms / 1e3
    problems = [problem for _, problem in due]
    plans = first.planner(first.model, problems, deadline)
    ended = time.perf_counter()
    missed = deadline is not None and ended > deadline
    for (agent, _), plan in zip(due, plans, strict=True):
        agent.accept(plan, 1e3 * (ended - started) / len(due), missed)
    if missed and first.floor_ms is None:
        _find_floor([agent for agent, _ in due], problems)


def _find_floor(agents: Sequence[ModelAgent], problems: Sequence[Problem]) -> None:
    """Time the shortest plan that can be made, one without any time, and warn if that is too long."""
    first, floor_ms = agents[0], math.inf
    for _ in range(TRIES):
        started = time.perf_counter()
        first.planner(first.model, problems, started)
        floor_ms = min(floor_ms, 1e3 * (time.perf_counter() - started))
    for agent in agents:
        agent.floor_ms = floor_ms
    if first.plan_ms is not None and floor_ms > first.plan_ms:
        first.warn(floor_ms)


def check_fit(model: WorldModel, planner: Planner) -> None:
    """Refuse a planner that asks more of a model than it can do."""
    try:
        check_horizon(planner, model)
    except ValueError as error:
        raise BadInput(str(error)) from error
    if planner.context > model.history:
        raise BadInput(f"this model uses {model.history} latents of context at most, not {planner.context}")
    if planner.needs_proposals and not model.proposes:
        raise BadInput(
            f"planner {planner.name} needs a model with proposals: choose another, or train them with "
            "`python -m training.train --phases proposals` and export again"
        )


def context_of(
    model: WorldModel, most: int, seen: Sequence[np.ndarray | None], actions: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The last observations or latents, one block apart, `(c, ...)`, and the action blocks `(c-1, k*A)` between them.

    `seen` holds one a step up to now, `actions` what was done up to now. c is at most `most`; less where the episode is
    younger, or where a step that would be used passed unseen.
    """
    block = model.action_block
    newest_first: list[np.ndarray] = []
    for one in list(seen)[::-block][:most]:
        if one is None:
            break
        newest_first.append(one)
    blocks = len(newest_first) - 1
    between = list(actions)[len(actions) - blocks * block :]
    return np.stack(newest_first[::-1]), np.array(between, np.float32).reshape(blocks, block * model.action_dim)
