"""A picture world for tests: a bright dot that actions move, written as a dataset file in a blink."""

import json
from pathlib import Path

import h5py
import numpy as np


def episode(rng: np.random.Generator, steps: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pictures `(steps + 1, side, side, 3)`, actions `(steps, 2)` and states `(steps + 1, 2)` of a wandering dot."""
    actions = np.clip(rng.normal(0.1, 0.6, (steps, 2)), -1, 1).astype(np.float32)
    state = rng.uniform(0.2, 0.8, 2)
    states = [state]
    for action in actions:
        state = np.clip(state + 0.05 * action, 0.1, 0.9)
        states.append(state)
    grid = (np.arange(side) + 0.5) / side
    x, y = np.stack(states).T
    blob = np.exp(-((grid[None, None] - x[:, None, None]) ** 2 + (grid[None, :, None] - y[:, None, None]) ** 2) / 0.005)
    return np.repeat((255 * blob).astype(np.uint8)[..., None], 3, -1), actions, np.stack(states)


def write(
    path: Path, episodes: int = 12, steps: int = 30, side: int = 64, every: int = 1, seed: int = 0, task: str = "dot"
) -> Path:
    """A dataset as the collector writes it, with `every` control steps a row."""
    rng = np.random.default_rng(seed)
    pixels, action, state = [], [], []
    for _ in range(episodes):
        frames, taken, states = episode(rng, steps, side)
        rows = frames[::every]
        padded = np.full((len(rows), 2 * every), np.nan, np.float32)
        padded[:-1] = taken.reshape(len(rows) - 1, -1)
        pixels.append(rows)
        action.append(padded)
        state.append(states[::every])
    lengths = np.array([len(rows) for rows in pixels])
    with h5py.File(path, "w") as file:
        file["pixels"] = np.concatenate(pixels)
        file["action"] = np.concatenate(action)
        file["state"] = np.concatenate(state)
        file["ep_len"] = lengths
        file["ep_offset"] = np.cumsum(lengths) - lengths
        file["ep_idx"] = np.repeat(np.arange(episodes), lengths)
        file["step_idx"] = np.concatenate([np.arange(length) for length in lengths])
        file.attrs.update({"task": task, "seed": seed, "frame_skip": every, "action_dim": 2})
        file.attrs["state_names"] = json.dumps(["dot_x", "dot_y"])
    return path
