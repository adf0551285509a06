"""A world-model file at work, behind the `WorldModel` contract."""

import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np

from agent.world_models import file as model_file
from agent.world_models.base import WorldModel
from agent.world_models.file import graph
from agent.world_models.file.budget import MAX_ALL_PACKED_BYTES
from agent.world_models.ort import EntryPoint, Opener
from envs.errors import BadInput

VECTOR = 16
"""Numbers that a processor computes at once, at most."""


class OnnxWorldModel(WorldModel):
    """The world model in the file at `path`.

    `device` is `auto` (CUDA if a session really gets it, else the CPU), `cpu`, `cuda` or `tensorrt`; `threads` are
    those of the CPU (default: all cores).
    """

    def __init__(self, path: str | Path, device: str = "auto", threads: int | None = None):
        self._opener = Opener(device, threads)
        self._file = model_file.read(path)
        self._entries: OrderedDict[str, EntryPoint] = OrderedDict()
        self._opening = threading.Lock()
        about = self.metadata = self._file.metadata
        self.task = about.task
        self.sees = "pixels"
        self.image_size = about.image_size
        self.look = about.look
        self.action_dim = about.action_dim
        self.action_low = np.array(about.action_low)
        self.action_high = np.array(about.action_high)
        self.action_mean = np.array(about.action_mean)
        self.action_std = np.array(about.action_std)
        self.action_block = about.action_block
        self.history = about.history
        self.horizon = about.horizon
        self.latent_size = self.cost_size = about.latent_size
        self.proposes = about.proposals > 0
        self.planner = dict(about.planner)
        self.sha256 = self._file.sha256
        self.path = _readable(Path(path))
        self._entry("latent")
        self.provider = str(self._opener)  # known once a session is open

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Pictures uint8 `(B, size, size, 3)` to latents float32 `(B, D)`."""
        side = self.image_size
        if observations.dtype != np.uint8 or observations.ndim != 4 or observations.shape[1:] != (side, side, 3):
            wrong = f"{observations.dtype} {observations.shape}"
            raise BadInput(f"this model sees pictures uint8 (B, {side}, {side}, 3), not {wrong}")
        return self._compute("latent", {"pixels": observations}, (len(observations), self.latent_size))

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The latents `(N, H, D)` after each block of `actions` `(N, H, k*A)`; see `WorldModel.rollout`.

        Each length of context is an entry point of its own, opened when it is first used, and so is a single block of
        each, which proposals ask for; other horizons below the file's are computed in full and cut.
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
        one_block = f"next_latent_{length}"
        if steps == 1 and one_block in self._file.work:
            return self._compute(one_block, inputs, (plans, 1, self.latent_size))
        return self._compute(f"latents_{length}", inputs, (plans, self.horizon, self.latent_size))[:, :steps]

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

    def multiply_adds(self, output: str) -> int:
        """Multiply-adds of one picture (`latent`) or one candidate (`latents_c`, from c latents of context)."""
        return graph.measure(self._file.model, output, self.metadata).multiply_adds

    def _compute(self, output: str, inputs: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        result = self._entry(output)(inputs, shape)
        if not np.isfinite(result).all():
            what = "proposals" if output == "proposals" else "latents"
            raise BadInput(f"the model's {what} are not finite numbers: its weights are broken, choose another model")
        return result

    def _entry(self, output: str) -> EntryPoint:
        with self._opening:
            if output not in self._entries:
                self._make_room(self._file.work[output].packed_bytes)
                self._entries[output] = self._open(output)
            self._entries.move_to_end(output)
            return self._entries[output]

    def _open(self, output: str) -> EntryPoint:
        part = graph.entry_point(self._file.model, output).SerializeToString()
        # A picture is one row, which operators share out; candidates are many, and each thread takes its own;
        # proposals are done before threads have woken up.
        rows = output != "latent"
        threads = 1 if rows else self._opener.threads
        packed = self._file.work[output].packed_bytes > 0
        session = self._opener.open(part, f"{self.sha256}/{output}", threads, packed)
        workers = self._opener.threads if rows and output != "proposals" and self._opener.device == "cpu" else 1
        return EntryPoint(session, self._opener.device, output, workers, self._file.most_rows[output])

    def _make_room(self, packed_bytes: int) -> None:
        """Close the entry points that were used longest ago until there is room for so many more packed weights."""
        work = self._file.work
        while (
            self._entries
            and sum(work[each].packed_bytes for each in self._entries) + packed_bytes > MAX_ALL_PACKED_BYTES
        ):
            self._entries.popitem(last=False)


def _readable(path: Path) -> str:
    """A path below this folder without it, another one in full."""
    whole, here = path.resolve(), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)
