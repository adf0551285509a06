"""Training windows: a few frames some control steps apart, and the actions between them. Split by episode."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from envs.dataset.reader import Dataset
from envs.errors import BadInput

HELD_OUT = 0.1


def split(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out episodes; the same for every seed, so that runs can be compared on the same data."""
    count = len(dataset.length)
    if count < 2:
        raise BadInput(f"{dataset.path} holds {count} episode: at least 2 are needed, one of them held out")
    order = np.random.default_rng(0).permutation(count)
    held = max(1, round(HELD_OUT * count))
    return np.sort(order[held:]), np.sort(order[:held])


def rows_of(dataset: Dataset, episodes: np.ndarray) -> np.ndarray:
    """All rows `(R,)` of `episodes`."""
    return np.concatenate([np.arange(dataset.length[e]) + dataset.offset[e] for e in episodes])


def action_scale(dataset: Dataset, episodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation `(A,)` of the single actions of `episodes`; a constant axis gets deviation 1."""
    actions = dataset.action[rows_of(dataset, episodes)].reshape(-1, dataset.action_dim)
    actions = actions[~np.isnan(actions).any(1)].astype(np.float64)
    if not len(actions) or not np.isfinite(actions).all():
        raise BadInput(f"the actions in {dataset.path} are missing or infinite")
    std = actions.std(0)
    return actions.mean(0).astype(np.float32), np.where(std > 1e-8, std, 1).astype(np.float32)


@dataclass(frozen=True)
class Windows:
    """Every window of `frames` frames, one action block apart, in some episodes of a dataset."""

    dataset: Dataset
    frames: int
    stride: int
    """Rows between two frames."""
    start: np.ndarray
    """First row of each window, `(W,)`."""
    end: np.ndarray
    """Last row of each window's episode, `(W,)`."""
    episode: np.ndarray
    """Episode of each window, `(W,)`."""
    fill: np.ndarray
    """What stands for a missing action, `(A,)`: the mean, which is 0 once normalised."""

    @classmethod
    def of(cls, dataset: Dataset, episodes: np.ndarray, frames: int, action_block: int, fill: np.ndarray) -> "Windows":
        """The windows of `episodes`; every row with enough rows after it starts one."""
        if action_block % dataset.frame_skip:
            raise BadInput(
                f"{dataset.path} has {dataset.frame_skip} control steps a row, which does not divide the "
                f"{action_block} steps between two frames: collect with --every 1 or --every {action_block}"
            )
        stride = action_block // dataset.frame_skip
        counts = np.maximum(dataset.length[episodes] - (frames - 1) * stride, 0)
        if not counts.any():
            raise BadInput(
                f"the episodes of {dataset.path} are too short: a window of {frames} frames needs "
                f"{(frames - 1) * stride + 1} rows, and the longest has {dataset.length[episodes].max()}"
            )
        start = [np.arange(n) + dataset.offset[e] for e, n in zip(episodes, counts, strict=True)]
        last = dataset.offset + dataset.length - 1
        return cls(
            dataset,
            frames,
            stride,
            np.concatenate(start),
            np.repeat(last[episodes], counts),
            np.repeat(episodes, counts),
            np.tile(fill, dataset.frame_skip).astype(np.float32),
        )

    def __len__(self) -> int:
        return len(self.start)

    def pixels(self, index: np.ndarray) -> np.ndarray:
        """Frames uint8 `(B, T, H, W, 3)` of the windows `index` `(B,)`."""
        return self.dataset.pixels[self.start[index, None] + self.stride * np.arange(self.frames)]

    def actions(self, index: np.ndarray) -> np.ndarray:
        """Raw action blocks float32 `(B, T, k*A)` that leave the frames; a missing action is the mean one."""
        rows = self.start[index, None] + np.arange(self.frames * self.stride)
        taken = self.dataset.action[np.minimum(rows, self.end[index, None])]
        blocks = np.where(np.isnan(taken) | (rows > self.end[index, None])[..., None], self.fill, taken)
        return blocks.reshape(len(index), self.frames, -1)

    def spread(self, count: int) -> np.ndarray:
        """At most `count` windows, evenly spaced over all."""
        return np.unique(np.linspace(0, len(self) - 1, count).astype(int))


class Order:
    """Which windows make up the batch of each step: a fresh shuffle each epoch, a pure function of seed and step."""

    def __init__(self, windows: int, batch: int, seed: int):
        if windows < batch:
            raise BadInput(f"the data has {windows} training windows, fewer than one batch of {batch}: lower --batch")
        self.windows = windows
        self.batch = batch
        self.seed = seed
        self.per_epoch = windows // batch

    def __getitem__(self, step: int) -> np.ndarray:
        """Window indices `(batch,)` of step 0, 1, …"""
        epoch, place = divmod(step, self.per_epoch)
        return shuffled(self.windows, self.seed, epoch)[place * self.batch : (place + 1) * self.batch]


@lru_cache(maxsize=2)
def shuffled(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order of an epoch: a permutation of `count`."""
    return np.random.default_rng([seed, epoch]).permutation(count)


class Loader:
    """Batches by step; the next one is read while the current one is used."""

    def __init__(self, windows: Windows, order: Order, part: slice = slice(None)):
        self.windows = windows
        self.order = order
        self.part = part
        self._pool = ThreadPoolExecutor(1)
        self._next = -1, Future[tuple[np.ndarray, np.ndarray]]()

    def __getitem__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Frames uint8 `(B, T, H, W, 3)` and raw action blocks `(B, T, k*A)` of this process's part of a step."""
        ready, batch = self._next
        if ready != step:
            batch = self._pool.submit(self._read, step)
        self._next = step + 1, self._pool.submit(self._read, step + 1)
        return batch.result()

    def episodes(self, step: int) -> list[int]:
        """The episodes a step's batch comes from."""
        return np.unique(self.windows.episode[self.order[step]]).tolist()

    def close(self) -> None:
        """Stop reading ahead."""
        self._pool.shutdown(cancel_futures=True)

    def _read(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        index = self.order[step][self.part]
        return self.windows.pixels(index), self.windows.actions(index)
