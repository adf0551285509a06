"""What a planner needs of a world model, the simulator as one, and how a name on the command line becomes one."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

import envs
from envs import BadInput, Task

PRETRAINED = Path(__file__).parent.parent / "pretrained"
"""Shipped models: `<task>/<name>.onnx`."""
SIMULATOR = "agent.world_model:SimulatorWorldModel"


class WorldModel(Protocol):
    """Encodes observations and rolls action blocks forward in latent space; numpy in, numpy out.

    An action block is `action_block` (k) consecutive actions of the task, concatenated, in the task's own units. How
    far apart two latents are is the squared Euclidean distance of their first `cost_size` numbers. A model may also
    be a `Proposer`.
    """

    task: str
    """The task's name on the command line."""
    image_size: int
    """Side of the pictures that `encode` takes."""
    look: Literal["fast", "paper"]
    """How those pictures are drawn (`look` of the task)."""
    action_dim: int
    """Numbers in one action (A)."""
    action_low: np.ndarray
    """Lower bound of each number of an action `(A,)`."""
    action_high: np.ndarray
    """Upper bound of each number of an action `(A,)`."""
    action_mean: np.ndarray
    """Mean of each number of an action in the training data `(A,)`: where a search without a better idea starts."""
    action_std: np.ndarray
    """Standard deviation of each number of an action in the training data `(A,)`: how far such a search looks."""
    action_block: int
    """Consecutive actions in one block (k)."""
    history: int
    """Most latents of context that a rollout can use (h)."""
    horizon: int
    """Most blocks that a rollout can predict (H)."""
    latent_size: int
    """Numbers in one latent (D)."""
    cost_size: int
    """The leading numbers of a latent that costs compare: D, unless latents carry more than what they mean."""
    sees: Literal["pixels", "state"]
    """What `encode` takes: the task's pictures, or, for a model that is allowed to look, its states."""

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Pictures uint8 `(B, size, size, 3)` (or states `(B, S)`) to latents float32 (or float64) `(B, D)`."""
        ...

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The latents `(N, H, D)` after each block of `actions` `(N, H, k*A)`; H <= horizon.

        `context` `(C, c, D)` holds the last c latents (1 <= c <= history), oldest first, and `past_actions`
        `(C, c-1, k*A)` the blocks between them; C is N, or 1 when all candidates start from the same context.
        """
        ...


class Proposer(Protocol):
    """What a world model offers besides if it can say which actions lead to a goal."""

    proposes: bool
    """True; a model that leaves this out, or says False, has no `propose`."""

    def propose(
        self, latents: np.ndarray, goals: np.ndarray, blocks_left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The next action block from `latents` `(B, D)` to `goals` `(B, D)`, reached after `blocks_left` `(B, 1)`.

        A mixture of Gaussians in the task's units: weights `(B, M)`, means and spreads `(B, M, k*A)`.
        """
        ...


class SimulatorWorldModel:
    """The real simulator as a world model: a planner's ceiling, and what `WorldModel` looks like in thirty lines.

    A latent is the task's `features` of a state, which costs compare, followed by the state itself, which the next
    step needs; float64, so that a rollout repeats the environment bit for bit.
    """

    sees: Literal["pixels", "state"] = "state"
    planner: Mapping[str, Any] = {
        "name": "cem", "candidates": 200, "decay": 0.7, "iterations": 6, "cost": "min", "colour": 2.0, "answer": "best"
    }  # fmt: skip
    """Settings for a model that is exact and slow; chosen on PushT."""

    def __init__(self, task: Task, action_block: int = 5, horizon: int = 5):
        self._task = task
        self.task, self.image_size, self.look = task.name, task.size, task.look
        self.action_dim = len(task.action_names)
        self.action_low, self.action_high = -np.ones(self.action_dim), np.ones(self.action_dim)
        self.action_mean, self.action_std = np.zeros(self.action_dim), np.full(self.action_dim, 0.5)
        self.action_block, self.history, self.horizon = action_block, 1, horizon
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


def load(model: str, task: Task | str, device: str = "auto", threads: int | None = None) -> WorldModel:
    """The world model that `model` names, for `task`.

    `model` is a file, the name of a file under `pretrained/<task>/`, `simulator`, or `package.module:Class`, which is
    called with a task of its own; `device` and `threads` are for files.
    """
    task = envs.make(task) if isinstance(task, str) else task
    name = task.name
    if (file := find(model, name)) is not None:
        from agent.onnx_model import OnnxWorldModel

        loaded: WorldModel = OnnxWorldModel(file, device=device, threads=threads)
    else:
        loaded = _import(SIMULATOR if model == "simulator" else model)(envs.make(name))
    if loaded.task != name:
        raise BadInput(f"{model} is a model of {loaded.task}, not of {name}: choose another model or another task")
    if loaded.action_dim != len(task.action_names):
        raise BadInput(f"{model} takes {loaded.action_dim} numbers an action, but {name} has {len(task.action_names)}")
    return loaded


def find(model: str, task: str) -> Path | None:
    """The file that `model` names, here or under `pretrained/<task>/`; None when it names a class."""
    for file in (Path(model), PRETRAINED / task / model):
        if file.is_file():
            return file
    if ":" in model or model == "simulator":
        return None
    shipped = ", ".join(sorted(file.name for file in (PRETRAINED / task).glob("*.onnx"))) or "nothing yet"
    raise BadInput(f"there is no model {model}, here or under pretrained/{task}/, which holds {shipped}")


def _import(model: str) -> type:
    module, _, name = model.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(f"{model} is neither a file nor a class that can be imported ({error})") from error
