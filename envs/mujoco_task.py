"""What the MuJoCo tasks share: state in and out of the simulator, and pictures of it."""

import weakref

import numpy as np

from envs.base import Task, shrink
from envs.gl import choose_backend, missing_gl  # first, because it checks MUJOCO_GL

# isort: split
import mujoco

from envs.coarse import coarse

_FLAG = mujoco.mjtRndFlag
EFFECTS = [int(flag) for flag in (_FLAG.mjRND_SHADOW, _FLAG.mjRND_REFLECTION, _FLAG.mjRND_SKYBOX)]


class MujocoTask(Task):
    """A task whose state begins with MuJoCo's qpos and qvel; a subclass sets `model`, `data` and `camera`."""

    model: mujoco.MjModel
    data: mujoco.MjData
    camera: str | int

    def restore(self, state: np.ndarray) -> None:
        """Put the simulator into `state`, with nothing left over from before (the solver's warm start would be)."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = state[: self.model.nq]
        self.data.qvel[:] = state[self.model.nq :]

    def captured(self) -> np.ndarray:
        """The simulator's state as one vector."""
        return np.concatenate([self.data.qpos, self.data.qvel])

    def project(self, state: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Where points `(..., 3)` of the world lie in the picture of `state`, as shares of it `(..., 2)`."""
        self.restore(state)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)
        camera = self.data.camera(self.camera)
        across, up, depth = np.moveaxis((points - camera.xpos) @ camera.xmat.reshape(3, 3), -1, 0)
        half = -depth * np.tan(np.radians(self.model.camera(self.camera).fovy[0]) / 2)  # it looks along -z
        return np.stack([0.5 + across / half / 2, 0.5 - up / half / 2], axis=-1)

    def draw(self, state: np.ndarray) -> np.ndarray:
        """The published look has every effect; the fast one has none, coarse meshes, and is drawn at twice the size."""
        if self.look == "paper":
            return self._render(state, self.size, fast=False)
        return shrink(self._render(state, 2 * self.size, fast=True), self.size)

    def portrait(self, state: np.ndarray, size: int) -> np.ndarray:
        return self._render(state, size, fast=False)

    def _render(self, state: np.ndarray, size: int, fast: bool) -> np.ndarray:
        self.restore(state)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)
        renderer = self._renderer(size, fast)
        renderer.update_scene(self.data, self.camera)
        if fast:
            renderer.scene.flags[EFFECTS] = False
        return renderer.render()

    def _renderer(self, size: int, fast: bool) -> mujoco.Renderer:
        """A renderer of this size and quality, made at the first picture: a task without pictures needs no GL."""
        if not hasattr(self, "_renderers"):
            self._renderers: dict[tuple[int, bool], mujoco.Renderer] = {}
        if (size, fast) not in self._renderers:
            choose_backend()
            quality, buffer = self.model.vis.quality, self.model.vis.global_
            before = quality.offsamples, quality.shadowsize
            buffer.offwidth = buffer.offheight = max(size, buffer.offwidth, buffer.offheight)
            if fast:
                quality.offsamples, quality.shadowsize = 0, 0
            try:
                renderer = mujoco.Renderer(coarse(self.model) if fast else self.model, size, size)
            except Exception as error:  # every GL library fails in its own way
                raise missing_gl(f"its context fails with {type(error).__name__}") from error
            finally:
                quality.offsamples, quality.shadowsize = before
            weakref.finalize(self, renderer.close)  # GL objects must go before the interpreter does
            self._renderers[size, fast] = renderer
        return self._renderers[size, fast]

    def close(self) -> None:
        for renderer in getattr(self, "_renderers", {}).values():
            renderer.close()
        self._renderers = {}
