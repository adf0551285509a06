"""Worlds whose best plan is known, as `WorldModel`s in a few lines of numpy."""

import os
import time
from pathlib import Path

import numpy as np

from agent.world_models.base import WorldModel


class PointWorld(WorldModel):
    """A point in the plane; each action moves it by `gain` times itself, so a goal in reach has a perfect plan.

    A latent is the position. Every candidate is rolled on its own, so the result cannot depend on its neighbours.
    """

    task, image_size, look, sees = "two-room", 8, "fast", "state"

    def __init__(self, gain=0.2, box=1.0, block=5, horizon=5, history=1, std=0.5, slow_s=0.0):
        self.action_dim = 2
        self.action_block = block
        self.horizon = horizon
        self.history = history
        self.action_low = np.full(2, -box)
        self.action_high = np.full(2, box)
        self.action_mean = np.zeros(2)
        self.action_std = np.full(2, std)
        self.latent_size = self.cost_size = 2
        self.gain = gain
        self.slow_s = slow_s
        self.calls: list[int] = []

    def encode(self, observations):
        return np.asarray(observations, np.float64)

    def rollout(self, context, past_actions, actions):
        self.calls.append(len(actions))
        time.sleep(self.slow_s)
        moves = actions.astype(np.float64).reshape(*actions.shape[:2], self.action_block, 2).sum(axis=2)
        return context[:, -1:, :] + self.gain * np.cumsum(moves, axis=1)


class ProposingWorld(PointWorld):
    """Knows its own inverse, up to a factor, `skill`; a second idea, which weighs less, is the opposite."""

    proposes = True

    def __init__(self, skill=1.0, spread=0.0, **settings):
        super().__init__(**settings)
        self.skill, self.spread = skill, spread

    def propose(self, latents, goals, blocks_left):
        step = self.skill * (goals - latents) / (self.gain * self.action_block * blocks_left)
        right = np.tile(step, self.action_block)
        means = np.stack([right, -right], axis=1)
        return np.tile([0.9, 0.1], (len(latents), 1)), means, np.full(means.shape, self.spread)


class RoomWorld(PointWorld):
    """Two-Room without its walls: right wherever no wall is near, and quick."""

    def __init__(self, task):
        super().__init__(gain=5.0)


class ProposingRoomWorld(ProposingWorld):
    """Two-Room without its walls, with proposals."""

    def __init__(self, task):
        super().__init__(gain=5.0)


class PixelRoomWorld(RoomWorld):
    """The same, from pictures: the agent is where they are red."""

    sees, image_size = "pixels", 64

    def encode(self, observations):
        red = observations[..., 0].astype(np.float64) - observations[..., 1]
        middle = (np.arange(64) + 0.5) * 224 / 64 - 0.5
        where = red.sum(axis=1) @ middle, red.sum(axis=2) @ middle
        return np.stack(where, axis=-1) / red.sum(axis=(1, 2))[:, None]


class OtherRoomWorld(RoomWorld):
    """The same model under another name."""


class PoorRoomWorld(RoomWorld):
    """Thinks that it walks ten times as fast as it does."""

    def __init__(self, task):
        super().__init__(task)
        self.gain = 50.0


class FailingWorld(RoomWorld):
    """Cannot plan for starts in the upper half of the picture."""

    def rollout(self, context, past_actions, actions):
        if context[0, -1, 1] < 112:
            raise ArithmeticError("the upper half is beyond me")
        return super().rollout(context, past_actions, actions)


class DeadlyWorld(RoomWorld):
    """Kills its process the first time that it is asked for a plan; the file that `DEADLY_WORLD` names remembers."""

    def rollout(self, context, past_actions, actions):
        try:
            Path(os.environ["DEADLY_WORLD"]).touch(exist_ok=False)
        except FileExistsError:
            return super().rollout(context, past_actions, actions)
        os._exit(9)
