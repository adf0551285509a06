"""A world model by hand.

python play.py --env two-room --model agent.world_models.examples.two_room_by_hand:TwoRoomByHand
"""

import numpy as np

from agent.world_models.base import WorldModel
from envs import Task


class TwoRoomByHand(WorldModel):
    """Sees where the red disc is and knows that it walks 5 px a step and cannot cross the wall but at the door."""

    look, sees = "fast", "pixels"
    action_dim, action_block, history, horizon = 2, 5, 1, 5
    action_low, action_high = -np.ones(2), np.ones(2)
    action_mean, action_std = np.zeros(2), np.full(2, 0.5)
    latent_size = cost_size = 2  # x and y in pixels of a 224 x 224 world

    def __init__(self, task: Task):
        self.task, self.image_size = task.name, task.size

    def encode(self, observations: np.ndarray) -> np.ndarray:
        red = np.maximum(observations[..., 0].astype(float) - observations[..., 1], 0)
        places = (np.arange(self.image_size) + 0.5) * 224 / self.image_size - 0.5
        return np.stack([red.sum(axis=1) @ places, red.sum(axis=2) @ places], axis=1) / red.sum(axis=(1, 2))[:, None]

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        at, latents = np.broadcast_to(context[:, -1], (len(actions), 2)), []
        for step, action in enumerate(actions.reshape(len(actions), -1, 2).swapaxes(0, 1), start=1):
            to = np.clip(at + 5 * action, 21, 203)
            left, at_door = at[:, 0] < 112, np.abs(to[:, 1] - 49) < 15
            to[:, 0] = np.where(at_door, to[:, 0], np.where(left, np.minimum(to[:, 0], 99), np.maximum(to[:, 0], 125)))
            at = to
            if step % self.action_block == 0:
                latents.append(at)
        return np.stack(latents, axis=1)
