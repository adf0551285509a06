"""A shipped encoder with the true task in place of its predictor: what is left of a failure is not the predictor's.

    python -m agent.evaluate --env pusht --model agent.world_models.examples.true_dynamics:TrueDynamics --planner guided

It is slow: every candidate is simulated and drawn.
"""

import numpy as np

from agent.world_models.onnx import OnnxWorldModel
from agent.world_models.registry import find
from agent.world_models.simulator import SimulatorWorldModel
from envs import Task

FILE = "qqworld.onnx"
BATCH = 256


class TrueDynamics(SimulatorWorldModel):
    """Rolls the simulator, draws what it comes to and encodes that; proposals are the file's."""

    def __init__(self, task: Task):
        self._learned = learned = OnnxWorldModel(find(FILE, task.name) or FILE, device="cpu", threads=1)
        super().__init__(task, learned.action_block, learned.horizon)
        self.action_mean = learned.action_mean
        self.action_std = learned.action_std
        self.proposes = learned.proposes
        self.cost_size = learned.latent_size
        self.latent_size = self.cost_size + len(task.state_names)

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """States `(..., S)` to latents `(..., D)`: what the file makes of their pictures, then the states."""
        states = observations.reshape(-1, observations.shape[-1])
        parts = [states[first : first + BATCH] for first in range(0, len(states), BATCH)]
        seen = [self._learned.encode(np.stack([self._task.draw(state) for state in part])) for part in parts]
        latents = np.concatenate([np.concatenate(seen), states], axis=1)
        return latents.reshape(*observations.shape[:-1], -1)

    def propose(
        self, latents: np.ndarray, goals: np.ndarray, blocks_left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._learned.propose(latents[:, : self.cost_size], goals[:, : self.cost_size], blocks_left)
