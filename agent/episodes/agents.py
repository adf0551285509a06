"""Who decides what to do: a planner with a world model, or a rule that needs neither."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from agent.planning.base import Plan, Planner, Problem
from agent.world_models.base import WorldModel, latent_distance
from envs import BadInput, Task
from envs.base import Policy

PLAN_SPACE, RULE_SPACE = 0x91A4, 0x4A11  # first words of the seeds, so that streams of different purpose never meet


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


class Agent(Protocol):
    """Looks once a step, asks for a plan when it needs one, and acts."""

    name: str
    sees: Literal["pixels", "state"]
    """What `see` and `aim` are given."""
    thought: Thought

    def begin(self, task: Task, seed: int, pair: int) -> None:
        """Forget the last episode; all randomness of this one comes from `seed` and `pair`."""
        ...

    def aim(self, goal: np.ndarray) -> None:
        """Pursue another goal, given as an observation."""
        ...

    def see(self, step: int, observation: np.ndarray | None) -> None:
        """Look at the world before acting in `step`; None is a step that passes unseen."""
        ...

    def problem(self) -> Problem | None:
        """What to plan now, if anything."""
        ...

    def accept(self, plan: Plan) -> None:
        """The answer to `problem`."""
        ...

    def act(self) -> np.ndarray:
        """The action `(A,)` of this step."""
        ...


class ModelAgent:
    """Plans with a world model every `planner.replan` blocks and carries the plan out in between.

    With `plan_ms` a plan is the best found in that time, and the episode depends on the clock. `planner` may be
    exchanged and `planning` switched off between steps; without a plan it does nothing (zeros).
    """

    name = "model"

    def __init__(self, model: WorldModel, planner: Planner, plan_ms: float | None = None):
        check_fit(model, planner)
        self.model, self.planner, self.plan_ms = model, planner, plan_ms
        self.sees = model.sees
        self.planning = True
        self.thought = Thought()

    def begin(self, task, seed, pair):
        self._seed, self._pair = seed, pair
        reach = (self.model.history - 1) * self.model.action_block
        self._latents: deque[Any] = deque(maxlen=reach + 1)  # one a step, None for a step that passed unseen
        self._actions: deque[np.ndarray] = deque(maxlen=max(reach, 1))
        self.thought = Thought()

    def aim(self, goal):
        self._goal = self.model.encode(goal[None])[0]
        self._plan, self._planned_at = None, None

    def see(self, step, observation):
        self._step = step
        self._latents.append(None if observation is None else self.model.encode(observation[None])[0])
        if not self.planning:
            self._plan = None
        if observation is not None:
            self._think()

    def problem(self):
        every_step = getattr(self.planner, "every_step", False)
        carried_out = 1 if every_step else self.planner.replan * self.model.action_block
        if not self.planning or (self._plan is not None and self._step - self._planned_at < carried_out):
            return None
        context, past_actions = context_of(self.model, self.planner.context, self._latents, self._actions)
        rng = np.random.default_rng([PLAN_SPACE, self._seed, self._pair, self._step])
        return Problem(context, past_actions, self._goal, rng, self._leftover())

    def accept(self, plan):
        self._plan, self._planned_at = plan, self._step
        self._think()

    def act(self):
        if self._plan is None:
            action = np.clip(np.zeros(self.model.action_dim), self.model.action_low, self.model.action_high)
        else:
            action = self._plan.actions.reshape(-1, self.model.action_dim)[self._step - self._planned_at]
        self._actions.append(action)
        return action

    def _think(self) -> None:
        latent = self._latents[-1]
        distance = float(latent_distance(self.model, latent, self._goal))
        self.thought = Thought(latent, self._goal, distance, self._plan, self._planned_at)

    def _leftover(self) -> np.ndarray | None:
        """The blocks of the last plan that have not begun."""
        if self._plan is None:
            return None
        return self._plan.actions[-(-(self._step - self._planned_at) // self.model.action_block) :]


def check_fit(model: WorldModel, planner: Planner) -> None:
    """Refuse a planner that asks more of a model than it can do."""
    if planner.horizon > model.horizon:
        raise BadInput(f"this model predicts {model.horizon} blocks at most, not {planner.horizon}: lower horizon")
    if planner.context > model.history:
        raise BadInput(f"this model uses {model.history} latents of context at most, not {planner.context}")
    if getattr(planner, "needs_proposals", False) and not getattr(model, "proposes", False):
        raise BadInput(
            f"planner {planner.name} needs a model with proposals: choose another, or train them with "
            "`python -m training.propose` and export again"
        )


def context_of(
    model: WorldModel, most: int, seen: Sequence[np.ndarray], actions: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The last things seen, one block apart, `(c, ...)`, and the action blocks `(c-1, k*A)` between them; c <= most.

    `seen` holds one thing a step up to now, `actions` what was done up to now.
    """
    block = model.action_block
    count = min(most, (len(seen) - 1) // block + 1)
    apart = list(seen)[::-block][:count][::-1]
    between = list(actions)[len(actions) - (count - 1) * block :]
    return np.stack(apart), np.array(between, np.float32).reshape(count - 1, block * model.action_dim)


class RuleAgent:
    """Acts by a rule that knows nothing of the goal."""

    sees: Literal["pixels", "state"] = "state"

    def __init__(self, name: str):
        if name not in RULES:
            raise BadInput(f"unknown agent '{name}': choose one of model, {', '.join(RULES)}")
        self.name = name
        self.thought = Thought()

    def begin(self, task, seed, pair):
        self._policy = RULES[self.name](task, np.random.default_rng([RULE_SPACE, seed, pair]))

    def aim(self, goal):
        pass

    def see(self, step, observation):
        self._state = observation

    def problem(self):
        return None

    def accept(self, plan):
        raise NotImplementedError("a rule asks for no plans")

    def act(self):
        return self._policy(self._state)


def _random(task: Task, rng: np.random.Generator) -> Policy:
    return lambda state: rng.uniform(-1, 1, len(task.action_names)).astype(np.float32)


def _zero(task: Task, rng: np.random.Generator) -> Policy:
    return lambda state: np.zeros(len(task.action_names), np.float32)


RULES: dict[str, Callable[[Task, np.random.Generator], Policy]] = {
    "random": _random,
    "zero": _zero,
    "expert": lambda task, rng: task.expert(rng),
}
"""`random`: uniform in the box; `zero`: nothing; `expert`: the task's data policy, which has goals of its own."""
