"""The space that planners search: z-scored action blocks inside the task's box, and noise in it."""

from dataclasses import dataclass

import numpy as np

from agent.world_models.base import WorldModel


@dataclass(frozen=True)
class SearchSpace:
    """Action blocks in units of the training data: 0 is its mean action, 1 its standard deviation."""

    mean: np.ndarray
    """Of one block, in the task's units `(k*A,)`, like `std`."""
    std: np.ndarray
    low: np.ndarray
    """Of a plan, in the task's units `(H, k*A)`, like `high`."""
    high: np.ndarray
    action_dim: int

    @classmethod
    def of(cls, model: WorldModel, blocks: int, committed: np.ndarray | None = None) -> "SearchSpace":
        """The space of plans of some `blocks` for `model` that begin with the actions `committed` `(C, A)`."""
        of_action = (model.action_mean, model.action_std)
        mean, std = (np.tile(np.asarray(value, np.float64), model.action_block) for value in of_action)
        return cls(mean, np.maximum(std, 1e-6), *box(model, blocks, committed), model.action_dim)

    @property
    def shape(self) -> tuple[int, int]:
        """Of one candidate: `(H, k*A)`."""
        return self.low.shape

    def clamp(self, candidates: np.ndarray) -> np.ndarray:
        """Candidates `(..., H, k*A)` moved into the box."""
        return np.clip(candidates, (self.low - self.mean) / self.std, (self.high - self.mean) / self.std)

    def actions(self, candidates: np.ndarray) -> np.ndarray:
        """Candidates `(..., H, k*A)` in the task's units, float32, never outside the box."""
        actions = (self.mean + self.std * candidates).astype(np.float32)
        return np.clip(actions, self.low.astype(np.float32), self.high.astype(np.float32))

    def start(self, leftover: np.ndarray | None) -> np.ndarray:
        """Where a search starts `(H, k*A)`: what is left of the last plan `(L, k*A)`, then the mean action."""
        start = np.zeros(self.shape)
        if leftover is not None:
            kept = min(len(leftover), len(start))
            start[:kept] = (leftover[:kept] - self.mean) / self.std
        return self.clamp(start)

    def noise(self, rng: np.random.Generator, count: int, colour: float = 0.0) -> np.ndarray:
        """Gaussian noise `(count, H, k*A)` of variance 1 whose power falls with frequency as `f ** -colour`.

        Time runs over single actions, through the blocks. White noise (0) averages out over a plan; red noise (2)
        wanders, so that some candidates really go somewhere.
        """
        steps = self.low.size // self.action_dim
        noise = rng.standard_normal((count, steps, self.action_dim))
        if colour and steps > 1:
            frequency = np.fft.rfftfreq(steps)
            frequency[0] = frequency[1]
            gain = frequency ** (-colour / 2)
            twice = np.full(len(gain), 2.0)  # how often each frequency stands in the full spectrum
            twice[0] = 1
            if steps % 2 == 0:
                twice[-1] = 1
            gain /= np.sqrt((twice * gain**2).sum() / steps)
            noise = np.fft.irfft(np.fft.rfft(noise, axis=1) * gain[:, None], n=steps, axis=1)
        return noise.reshape(count, *self.shape)


def box(model: WorldModel, blocks: int, committed: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Where plans may lie, in the task's units: bounds `(H, k*A)` that leave `committed` `(C, A)` no choice."""
    low, high = (
        np.tile(np.asarray(bound, np.float64), (blocks, model.action_block))
        for bound in (model.action_low, model.action_high)
    )
    if committed is not None:
        low[0, : committed.size] = high[0, : committed.size] = committed.ravel()
    return low, high
