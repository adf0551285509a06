"""The true task as a world model."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agent.world_models.base import WorldModel
from envs import Task


class SimulatorWorldModel(WorldModel):
    """The real simulator as a world model: a planner's ceiling, and what `WorldModel` looks like in thirty lines.

    A latent is the task's `features` of a state, which costs compare, followed by the state itself, which the next
    step needs; float64, so that a rollout repeats the environment bit for bit.
    """

    sees = "state"
    planner: Mapping[str, Any] = {
        "name": "cem", "candidates": 200, "decay": 0.7, "iterations": 6, "cost": "min", "colour": 2.0, "answer": "best"
    }  # fmt: skip
    """Settings for a model that is exact and slow; chosen on PushT."""

    def __init__(self, task: Task, action_block: int = 5, horizon: int = 5):
        self._task = task
        self.task = task.name
        self.image_size = task.size
        self.look = task.look
        self.action_dim = len(task.action_names)
        self.action_low = -np.ones(self.action_dim)
        self.action_high = np.ones(self.action_dim)
        self.action_mean = np.zeros(self.action_dim)
        self.action_std = np.full(self.action_dim, 0.5)
        self.action_block = action_block
        self.history = 1
        self.horizon = horizon
        self.cost_size = task.features(task.state()).shape[-1]
        self.latent_size = self.cost_size + len(task.state_names)

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """States `(..., S)` to latents `(..., D)`."""
        return np.concatenate([self._task.features(observations), observations], axis=-1)

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Steps every candidate from the state in its last latent of context; earlier latents add nothing."""
        plans, blocks = actions.shape[:2]
        starts = np.broadcast_to(context[:, -1, self.cost_size :], (plans, self.latent_size - self.cost_size))
        moves = np.clip(actions.astype(np.float64), -1, 1).reshape(plans, blocks, self.action_block, self.action_dim)
        states = np.empty((plans, blocks, starts.shape[1]))
        for plan in range(plans):
            state = starts[plan]
            for block in range(blocks):
                for action in moves[plan, block]:
                    state = self._task.advance(state, action)
                states[plan, block] = state
        return self.encode(states)
