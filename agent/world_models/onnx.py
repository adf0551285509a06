"""A world-model file at work, behind the `WorldModel` contract."""

from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from onnx import ModelProto

from agent.world_models import file as model_file
from agent.world_models.file import graph
from agent.world_models.ort import EntryPoint, Opener
from envs.errors import BadInput

VECTOR = 16
"""Numbers that a processor computes at once, at most."""


class OnnxWorldModel:
    """The world model in the file at `path`.

    `device` is `auto` (CUDA if a session really gets it, else the CPU), `cpu`, `cuda` or `tensorrt`; `threads` are
    those of the CPU, all cores if left out. `provider` says in a few words what it runs on, `sha256` names the file,
    and `planner` holds the planner settings that it was tuned with.
    """

    sees: Literal["pixels", "state"] = "pixels"

    def __init__(self, path: str | Path, device: str = "auto", threads: int | None = None):
        self._opener = Opener(device, threads)
        file = model_file.read(path)
        about = self.metadata = file.metadata
        self.sha256, self.planner = file.sha256, dict(about.planner)
        self.task, self.image_size, self.look = about.task, about.image_size, about.look
        self.action_dim, self.action_block = about.action_dim, about.action_block
        self.action_low, self.action_high = np.array(about.action_low), np.array(about.action_high)
        self.action_mean, self.action_std = np.array(about.action_mean), np.array(about.action_std)
        self.history, self.horizon = about.history, about.horizon
        self.latent_size = self.cost_size = about.latent_size
        self.proposes = about.proposals > 0
        self._file = file
        self._entries: dict[str, EntryPoint] = {}
        self._entry("latent", file.model)
        self.provider = str(self._opener)

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Pictures uint8 `(B, size, size, 3)` to latents float32 `(B, D)`."""
        side = self.image_size
        if observations.dtype != np.uint8 or observations.ndim != 4 or observations.shape[1:] != (side, side, 3):
            wrong = f"{observations.dtype} {observations.shape}"
            raise BadInput(f"this model sees pictures uint8 (B, {side}, {side}, 3), not {wrong}")
        return self._compute("latent", {"pixels": observations}, (len(observations), self.latent_size))

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The latents `(N, H, D)` after each block of `actions` `(N, H, k*A)`; see `WorldModel.rollout`.

        Each length of context is an entry point of its own, opened when it is first used, and so is a single block,
        which proposals ask for; other horizons below the file's are computed in full and cut.
        """
        contexts, length = context.shape[:2]
        plans, steps = actions.shape[:2]
        block = self.action_dim * self.action_block
        fits = context.shape == (contexts, length, self.latent_size) and actions.shape == (plans, steps, block)
        fits = fits and past_actions.shape == (contexts, length - 1, block) and contexts in (1, plans)
        if not fits or not 1 <= length <= self.history or not 1 <= steps <= self.horizon:
            wanted = f"(1 or N, 1 to {self.history}, {self.latent_size}) and actions (N, 1 to {self.horizon}, {block})"
            wrong = f"{context.shape}, {past_actions.shape} and {actions.shape}"
            raise BadInput(f"this model takes contexts {wanted} with the blocks between, not {wrong}")
        unread = self.history - length
        inputs = {
            "context": np.zeros((contexts, self.history, self.latent_size), np.float32),
            "past_actions": np.zeros((contexts, self.history - 1, block), np.float32),
            "actions": np.zeros((plans, self.horizon, block), np.float32),
        }
        inputs["context"][:, unread:], inputs["past_actions"][:, unread:] = context, past_actions
        inputs["actions"][:, :steps] = actions
        output = f"latents_{length}"
        if steps == 1 and self._short is not None:
            return self._compute(output, inputs, (plans, 1, self.latent_size), self._short)
        return self._compute(output, inputs, (plans, self.horizon, self.latent_size))[:, :steps]

    def propose(
        self, latents: np.ndarray, goals: np.ndarray, blocks_left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights `(B, M)`, means and spreads `(B, M, k*A)` of the next action block; see `WorldModel.propose`."""
        rows, components = len(latents), self.metadata.proposals
        block = self.action_dim * self.action_block
        if not self.proposes:
            raise BadInput("this model has no proposals: choose another planner")
        if latents.shape != (rows, self.latent_size) or goals.shape != latents.shape or blocks_left.shape != (rows, 1):
            wrong = f"{latents.shape}, {goals.shape} and {blocks_left.shape}"
            raise BadInput(f"this model proposes from (B, {self.latent_size}) twice and (B, 1), not {wrong}")
        if not (blocks_left > 0).all():
            raise BadInput("the blocks left until a goal is reached are more than 0")
        # Processors round what is left over of their vector width in another way, so nothing is: the last row repeats.
        padded = np.minimum(np.arange(-(-rows // VECTOR) * VECTOR), rows - 1)
        given = {"start": latents, "goal": goals, "blocks_left": blocks_left}
        inputs = {name: np.asarray(values, np.float32)[padded] for name, values in given.items()}
        found = self._compute("proposals", inputs, (len(padded), components, 1 + 2 * block))[:rows]
        return found[..., 0], found[..., 1 : 1 + block], found[..., 1 + block :]

    @cached_property
    def _short(self) -> ModelProto | None:
        return graph.one_block(self._file.model, self.metadata)

    def multiply_adds(self, output: str) -> int:
        """What one picture (`latent`) or one candidate (`latents_c`, from c latents of context) takes."""
        return graph.measure(self._file.model, output, self.metadata).multiply_adds

    def _compute(
        self, output: str, inputs: dict[str, np.ndarray], shape: tuple[int, ...], model: ModelProto | None = None
    ) -> np.ndarray:
        result = self._entry(output, model or self._file.model)(inputs, shape)
        if not np.isfinite(result).all():
            what = "proposals" if output == "proposals" else "latents"
            raise BadInput(f"the model's {what} are not finite numbers: its weights are broken, choose another model")
        return result

    def _entry(self, output: str, model: ModelProto) -> EntryPoint:
        key = output if model is self._file.model else f"{output}, one block"
        if key not in self._entries:
            part = graph.entry_point(model, output)
            # A picture is one row, which operators share out; candidates are many, and each thread takes its own;
            # proposals are done before threads have woken up.
            rows = output != "latent"
            threads = 1 if rows else self._opener.threads
            session = self._opener.open(part.SerializeToString(), self._file.work[output].weight_bytes, threads)
            workers = self._opener.threads if rows and output != "proposals" and self._opener.device == "cpu" else 1
            self._entries[key] = EntryPoint(session, self._opener.device, output, workers)
        return self._entries[key]
