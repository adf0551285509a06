"""A world-model file at work: ONNX Runtime sessions behind the `WorldModel` contract."""

import threading
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime as ort

from agent import model_file
from envs.errors import BadInput

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}


class OnnxWorldModel:
    """The world model in the file at `path`.

    `device` is `auto` (CUDA if a session really gets it, else the CPU), `cpu`, `cuda` or `tensorrt`; `threads` are
    those of the CPU, all cores if left out. `provider` says in a few words what it runs on, `sha256` names the file,
    and `planner` holds the planner settings that it was tuned with.
    """

    sees: Literal["pixels", "state"] = "pixels"

    def __init__(self, path: str | Path, device: str = "auto", threads: int | None = None):
        file = model_file.read(path)
        self.metadata, self.sha256 = file.metadata, file.sha256
        self.task, self.image_size, self.look = file.metadata.task, file.metadata.image_size, file.metadata.look
        self.action_dim, self.action_block = file.metadata.action_dim, file.metadata.action_block
        self.action_low, self.action_high = np.array(file.metadata.action_low), np.array(file.metadata.action_high)
        self.action_mean, self.action_std = np.array(file.metadata.action_mean), np.array(file.metadata.action_std)
        self.history, self.horizon = file.metadata.history, file.metadata.horizon
        self.latent_size = self.cost_size = file.metadata.latent_size
        self.planner = dict(file.metadata.planner)
        self._file, self._threads, self._lock = file, threads, threading.Lock()
        self._encode = self._session("latent")
        self._rollouts: dict[int, ort.InferenceSession] = {}
        self.provider = "CPU"

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Pictures uint8 `(B, size, size, 3)` to latents float32 `(B, D)`."""
        shape = (self.image_size, self.image_size, 3)
        if observations.dtype != np.uint8 or observations.shape[1:] != shape:
            raise BadInput(
                f"this model sees pictures uint8 (B, {', '.join(map(str, shape))}), "
                f"got {observations.dtype} {observations.shape}"
            )
        return self._encode.run(None, {"pixels": observations})[0]

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The latents `(N, H, D)` after each block of `actions` `(N, H, k*A)`; see `WorldModel.rollout`."""
        length, steps, block = context.shape[1], actions.shape[1], self.action_dim * self.action_block
        session = self._rollouts.get(length)
        if session is None:
            session = self._rollouts[length] = self._session(f"latents_{length}")
        padded = np.zeros((len(context), self.history, self.latent_size), np.float32)
        padded[:, self.history - length :] = context
        past = np.zeros((len(context), self.history - 1, block), np.float32)
        past[:, self.history - length :] = past_actions
        plans = np.zeros((len(actions), self.horizon, block), np.float32)
        plans[:, :steps] = actions
        feeds = {"context": padded, "past_actions": past, "actions": plans}
        wanted = {value.name for value in session.get_inputs()}
        return session.run(None, {name: value for name, value in feeds.items() if name in wanted})[0][:, :steps]

    def _session(self, output: str) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        # Planning which of thousands of values may share a buffer takes ONNX Runtime longer than the graph runs.
        options.enable_mem_reuse = False
        if self._threads is not None:
            options.intra_op_num_threads = self._threads
        return ort.InferenceSession(self._file.entry(output), options, providers=["CPUExecutionProvider"])
