"""Cube: a robot arm with a gripper moves a cube (OGBench's single cube).

State 41: MuJoCo's qpos (6 arm joints, 8 gripper joints, cube x, y, z in m and quaternion) and qvel (20). Action 5:
effector dx, dy, dz (1 = 0.05 m), dyaw (1 = 0.3 rad), gripper closing (1 = from open to closed), relative to where the
effector is. Control rate 20 Hz: 25 physics steps of 0.002 s. Start: OGBench's data-collection start, arm above the
table with a random yaw, cube anywhere in its box. Success: the cube's centre at most 0.04 m from the goal's; arm and
orientation do not count.

One declared difference from OGBench: the effector is measured in the state itself, not one physics step earlier, so
that the state vector is all there is.
"""

from typing import Any

import numpy as np

from envs.base import Policy
from envs.dataset.layout import Look
from envs.mujoco_task import MujocoTask, mujoco  # first, because it checks MUJOCO_GL

# isort: split
from ogbench.manipspace import lie
from ogbench.manipspace.envs.cube_env import CubeEnv
from ogbench.manipspace.oracles.markov.cube_markov import CubeMarkovOracle

PHYSICS_STEPS = 25
GRIPPER_JOINTS = (
    *(f"right_{part}" for part in ("driver", "coupler", "spring_link", "follower")),
    *(f"left_{part}" for part in ("driver", "coupler", "spring_link", "follower")),
)
ARM_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
CUBE_POSITION = slice(14, 17)
CUBE_QUATERNION = slice(17, 21)
NOISE = np.array([1, 1, 1, 3, 10.0])  # relative noise on each axis of the action
STRIDE_M = 0.42 * 0.05  # how far the effector gets in a control step, of the 0.05 m that it is sent
ABOVE = 0.16  # where OGBench's oracle counts as above the table


class Cube(MujocoTask):
    """A robot arm with a gripper moves a cube."""

    name = "cube"
    state_names = (
        *ARM_JOINTS,
        *GRIPPER_JOINTS,
        *("cube_x", "cube_y", "cube_z", "cube_qw", "cube_qx", "cube_qy", "cube_qz"),
        *(f"{joint}_velocity" for joint in (*ARM_JOINTS, *GRIPPER_JOINTS)),
        *("cube_vx", "cube_vy", "cube_vz", "cube_wx", "cube_wy", "cube_wz"),
    )
    action_names = ("dx", "dy", "dz", "dyaw", "grip")
    control_hz = 20.0
    episode_steps = 200
    proprio = (*range(14), *range(21, 35))
    movable = (14, 15, 16)
    moved_by = 0.04
    rule = "cube at most 0.04 m from the goal"
    unit = "m"
    camera = "front_pixels"
    drag = ((0.0, 0.8), (0.65, 0.0), (0.0, 0.0))  # the camera stands in front of the table: x comes nearer

    def __init__(self, size: int | None = None, look: Look = "fast", render_mode: str | None = None):
        super().__init__(size, look, render_mode)
        self._ogbench = CubeEnv("single", mode="data_collection", visualize_info=False)
        self._ogbench.reset(seed=0)
        self.model, self.data = self._ogbench.model, self._ogbench.data
        for material in ("black", "pad_gray"):  # a gripper that can be told from the arm, as published
            self.model.material(f"ur5e/robotiq/{material}").rgba = self._ogbench._colors["purple"]
        self._contact = 0.0

    def start(self, rng: np.random.Generator) -> np.ndarray:
        self._ogbench._np_random = rng
        self._ogbench.reset()
        return self.captured()

    def advance(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        self.restore(state)
        mujoco.mj_forward(self.model, self.data)
        self._ogbench.set_control(np.asarray(action, dtype=np.float64))
        mujoco.mj_step(self.model, self.data, PHYSICS_STEPS)
        mujoco.mj_rnePostConstraint(self.model, self.data)
        force = np.linalg.norm(self.data.body("ur5e/robotiq/right_pad").cfrc_ext)
        self._contact = float(np.clip(force / 50, 0, 1))
        return self.captured()

    def success(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return self.distance(state, goal) <= 0.04

    def distance(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return np.linalg.norm(np.asarray(state)[..., CUBE_POSITION] - np.asarray(goal)[..., CUBE_POSITION], axis=-1)

    def features(self, state: np.ndarray) -> np.ndarray:
        return np.asarray(state)[..., CUBE_POSITION] / 0.04

    def paths(self, state: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The way of the effector through the air, with a stride as it is on average: to simulate it takes seconds."""
        strides = np.cumsum(STRIDE_M * actions[..., :3].astype(np.float64), axis=1)
        here = self._seen(state)["proprio/effector_pos"]
        return self.project(state, here + np.pad(strides, ((0, 0), (1, 0), (0, 0))))

    def expert(self, rng: np.random.Generator) -> Policy:
        """OGBench's Markov oracle with per-episode noise; as soon as the cube is placed it gets a new target."""
        oracle = CubeMarkovOracle(env=self._ogbench, min_norm=0.4)
        oracle.reset(None, None)
        noise = rng.uniform(0, 0.1) * NOISE
        bounds = self._ogbench._target_sampling_bounds
        target = np.array([*rng.uniform(*bounds), 0.02])
        yaw = rng.uniform(0, 2 * np.pi)
        # The pose that the arm takes once the cube is placed; the oracle drew it from numpy's global generator.
        oracle._final_pos = rng.uniform(*self._ogbench._arm_sampling_bounds)
        oracle._final_yaw = rng.uniform(-np.pi, np.pi)
        self._contact = 0.0

        def policy(state: np.ndarray) -> np.ndarray:
            nonlocal target, yaw
            seen = self._seen(state)
            placed = np.linalg.norm(target - seen["privileged/block_0_pos"]) <= 0.02
            if placed and self._contact < 0.1 and seen["proprio/effector_pos"][2] > ABOVE:
                target, yaw = np.array([*rng.uniform(*bounds), 0.02]), rng.uniform(0, 2 * np.pi)
            seen |= {"privileged/target_block_pos": target, "privileged/target_block_yaw": np.array([yaw])}
            action = oracle.select_action(None, seen)
            return np.clip(action + rng.normal(0, noise), -1, 1).astype(np.float32)

        return policy

    def _seen(self, state: np.ndarray) -> dict[str, Any]:
        """What the oracle looks at. The grip's force is the one that the last `advance` left behind."""
        self.restore(state)
        mujoco.mj_kinematics(self.model, self.data)
        site = self.data.site("ur5e/robotiq/pinch")
        return {
            "proprio/effector_pos": site.xpos.copy(),
            "proprio/effector_yaw": np.array([lie.SO3.from_matrix(site.xmat.reshape(3, 3)).compute_yaw_radians()]),
            "proprio/gripper_opening": np.clip(self.data.joint("ur5e/robotiq/right_driver_joint").qpos / 0.8, 0, 1),
            "proprio/gripper_contact": np.array([self._contact]),
            "privileged/target_block": 0,
            "privileged/block_0_pos": state[CUBE_POSITION].copy(),
            "privileged/block_0_yaw": np.array([lie.SO3(wxyz=state[CUBE_QUATERNION]).compute_yaw_radians()]),
        }
