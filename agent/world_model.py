"""What a planner needs of a world model, and the models that offer it."""

from typing import Literal, Protocol

import numpy as np


class WorldModel(Protocol):
    """Encodes observations and rolls action blocks forward in latent space; numpy in, numpy out.

    An action block is `action_block` (k) consecutive actions of the task, concatenated, in the task's own units.
    """

    task: str
    """The task's name on the command line."""
    image_size: int
    """Side of the pictures that `encode` takes."""
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
    sees: Literal["pixels", "state"]
    """What `encode` takes: the task's pictures, or, for a model that is allowed to look, its states."""

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Pictures uint8 `(B, size, size, 3)` (or states `(B, S)`) to latents float32 `(B, D)`."""
        ...

    def rollout(self, context: np.ndarray, past_actions: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The latents `(N, H, D)` after each block of `actions` `(N, H, k*A)`.

        `context` `(C, c, D)` holds the last c latents (1 <= c <= history), oldest first, and `past_actions` `(C, c-1, k*A)`
        the blocks between them; C is N, or 1 when all candidates start from the same context.
        """
        ...
