"""Agents that act by a rule: no model, no plans, no idea of the goal."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from agent.episodes.agents import Thought
from envs import BadInput, Task
from envs.base import Policy

RULE_SPACE = 0x4A11  # first word of the seeds


class RuleAgent:
    """Acts by one of `RULES`."""

    sees: Literal["pixels", "state"] = "state"
    thought = Thought()
    new_plan_ms: float | None = None
    misses = 0
    floor_ms: float | None = None
    model = None
    planner = None
    planning = False

    def __init__(self, name: str):
        if name not in RULES:
            raise BadInput(f"unknown agent '{name}': choose one of model, {', '.join(RULES)}")
        self.name = name

    def begin(self, task: Task, seed: int, pair: int) -> None:
        self._policy = RULES[self.name](task, np.random.default_rng([RULE_SPACE, seed, pair]))

    def aim(self, goal: np.ndarray) -> None:
        pass

    def must_see(self, step: int) -> bool:
        return True

    def see(self, step: int, observation: np.ndarray | None) -> None:
        assert observation is not None, "a rule must see every state"
        self._state = observation

    def act(self) -> np.ndarray:
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
