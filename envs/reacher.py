"""Reacher: a two-link arm moves to a pose.

State 4: shoulder and wrist angle in rad, their velocities in rad/s. Action 2: shoulder and wrist torque as a share of
the motors' limit. Control rate 25 Hz: two physics steps of 0.02 s each. Start: shoulder uniform on a full turn, wrist
uniform in its range of +-160 degrees, at rest. Success: both angles less than 0.05 rad from the goal's.

One declared difference from the published task: the shoulder turns without end, so it is compared modulo a full turn.
"""

import numpy as np

from envs.base import Policy
from envs.dataset.layout import Look
from envs.mujoco_task import MujocoTask, mujoco  # first, because it checks MUJOCO_GL

# isort: split
from dm_control.suite import reacher
from mujoco import rollout

PHYSICS_STEPS = 2
STIFFNESS, DAMPING = 1.0, 0.1
RANDOM_SHARE = 0.5


class Reacher(MujocoTask):
    """A two-link arm moves to a pose."""

    name = "reacher"
    state_names = ("shoulder", "wrist", "shoulder_velocity", "wrist_velocity")
    action_names = ("shoulder_torque", "wrist_torque")
    control_hz = 25.0
    proprio = (0, 1, 2, 3)
    movable = (0, 1)
    moved_by = 0.05
    rule = "shoulder (modulo a full turn) and wrist less than 0.05 rad from the goal"
    unit = "rad"
    camera = "fixed"
    drag = ((np.pi, 0), (0, np.pi))  # across turns the shoulder, down the wrist

    def __init__(self, size: int | None = None, look: Look = "fast", render_mode: str | None = None):
        super().__init__(size, look, render_mode)
        xml, assets = reacher.get_model_and_assets()
        self.model = mujoco.MjModel.from_xml_string(xml.decode(), assets)
        self.model.geom("target").rgba[3] = 0  # the goal is a pose, not a spot on the floor
        self.data = mujoco.MjData(self.model)
        self._wrist_range = self.model.joint("wrist").range

    def start(self, rng: np.random.Generator) -> np.ndarray:
        return np.array([rng.uniform(-np.pi, np.pi), rng.uniform(*self._wrist_range), 0.0, 0.0])

    def advance(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        self.restore(state)
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, PHYSICS_STEPS)
        return self.captured()

    def success(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return self.distance(state, goal) < 0.05

    def distance(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """The larger of the two angles' differences."""
        shoulder, wrist = np.moveaxis(np.asarray(state)[..., :2] - np.asarray(goal)[..., :2], -1, 0)
        return np.maximum(np.abs((shoulder + np.pi) % (2 * np.pi) - np.pi), np.abs(wrist))

    def features(self, state: np.ndarray) -> np.ndarray:
        shoulder, wrist = np.moveaxis(np.asarray(state)[..., :2], -1, 0)
        return np.stack([np.cos(shoulder), np.sin(shoulder), wrist], axis=-1) / 0.05

    def paths(self, state: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The way of the fingertip, by the simulator."""
        self.restore(state)
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        start = np.empty(size)
        mujoco.mj_getState(self.model, self.data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        control = np.repeat(actions.astype(np.float64), PHYSICS_STEPS, axis=1)
        poses = np.broadcast_to(state[:2], (len(actions), 1, 2))
        if control.shape[1]:
            reached, _ = rollout.rollout(self.model, self.data, np.tile(start, (len(actions), 1)), control)
            poses = np.concatenate([poses, reached[:, PHYSICS_STEPS - 1 :: PHYSICS_STEPS, 1:3]], axis=1)  # after time
        shoulder, elbow = poses[..., 0], poses.sum(axis=-1)
        arm, hand = self.model.body("hand").pos[0], self.model.body("finger").pos[0]
        x = arm * np.cos(shoulder) + hand * np.cos(elbow)
        y = arm * np.sin(shoulder) + hand * np.sin(elbow)
        return self.project(state, np.stack([x, y, np.full_like(x, self.model.body("arm").pos[2])], axis=-1))

    def expert(self, rng: np.random.Generator) -> Policy:
        """Half of the episodes are uniform random torques; the others reach random poses in turn, with noise."""
        if rng.random() < RANDOM_SHARE:
            return lambda state: rng.uniform(-1, 1, 2).astype(np.float32)
        noise = rng.uniform(0.0, 0.5)
        pose, steps_left = self.start(rng), 0

        def policy(state: np.ndarray) -> np.ndarray:
            nonlocal pose, steps_left
            if steps_left == 0:
                pose, steps_left = self.start(rng), int(rng.integers(10, 40))
            steps_left -= 1
            error = pose[:2] - state[:2]
            error[0] = (error[0] + np.pi) % (2 * np.pi) - np.pi
            torque = STIFFNESS * error - DAMPING * state[2:] + rng.normal(0, noise, 2)
            return np.clip(torque, -1, 1).astype(np.float32)

        return policy
