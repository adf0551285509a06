"""What a planner needs of a world model, and how far apart its latents are."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np


class WorldModel(Protocol):
    """Encodes observations and rolls action blocks forward in latent space; numpy in, numpy out.

    An action block is `action_block` (k) consecutive actions of the task, concatenated, in the task's own units. How
    far apart two latents are is the squared Euclidean distance of their first `cost_size` numbers. What has a default
    here may be left out by a class that is loaded by its name (`registry.load` fills it in).
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
    """The leading numbers of a latent that costs compare: D, unless the state follows (only in a model of states)."""
    sees: Literal["pixels", "state"]
    """What `encode` takes: the task's pictures, or, for a model that is allowed to look, its states."""
    proposes: bool = False
    """Whether it can say which actions lead to a goal (`propose`)."""
    planner: Mapping[str, Any] = {}
    """Name and settings of the planner that it was tuned with, possibly none."""
    provider: str = "CPU"
    """What it runs on, in a few words."""
    sha256: str | None = None
    """The file's digest; None for a model that is not a file."""
    path: str | None = None
    """Where the file is, as people read it; None for a model that is not a file."""

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Pictures uint8 `(B, size, size, 3)` (or states `(B, S)`) to latents float32 (or float64) `(B, D)`."""
        ...

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The latents `(N, H, D)` after each block of `actions` `(N, H, k*A)`; H <= horizon.

        `context` `(C, c, D)` holds the last c latents (1 <= c <= history), oldest first, and `past_actions`
        `(C, c-1, k*A)` the blocks between them; C is N, or 1 when all candidates start from the same context.
        """
        ...

    def propose(
        self, latents: np.ndarray, goals: np.ndarray, blocks_left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The next action block from `latents` `(B, D)` to `goals` `(B, D)`, reached after `blocks_left` `(B, 1)`.

        A mixture of Gaussians in the task's units: weights `(B, M)`, means and spreads `(B, M, k*A)`. Only models that
        say `proposes` have it.
        """
        raise NotImplementedError("this model does not propose actions")


def latent_distance(model: WorldModel, latents: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Squared distance `(...)` of latents `(..., D)` to a goal `(D,)` in the numbers that count."""
    difference = latents[..., : model.cost_size].astype(np.float64) - goal[: model.cost_size]
    return np.square(difference).sum(axis=-1)
