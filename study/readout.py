"""Read the agent's position from the latents of Two-Room's shipped models (the paper's Figure 3).

    python -m study.readout

A linear map from latent to position is fitted on episodes 0-79 of the data policy and tested on episodes 80-99, which
have seeds of their own. What the figure needs is left in docs/study/readout/two-room.json.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import envs
from agent.factory import make_task
from agent.world_models.base import WorldModel
from agent.world_models.registry import PRETRAINED, load
from envs.errors import parse_command_line, run
from study.cell import write
from study.cells import CELLS

TASK = "two-room"
MODELS = ("lewm", "qqworld")
EPISODES, FITTED = 100, 80
SHOWN = (80, 81)
"""The first test episodes: none is chosen for what it shows."""
_READOUT_SPACE = 0x2EAD07  # the first word of every seed here; collected episodes and pairs have others


@dataclass(frozen=True)
class Readout:
    """Read the agent's position from the latents of Two-Room's shipped models."""

    out: Path = CELLS / "readout" / "two-room.json"
    """File for what the figure needs."""
    models: Path = PRETRAINED / TASK
    """Folder of the models lewm.onnx and qqworld.onnx."""


def trajectories() -> np.ndarray:
    """The positions `(E, T, 2)` of the agent in every episode, in px."""
    task = envs.make(TASK)
    seeds = ([_READOUT_SPACE, number] for number in range(EPISODES))
    return np.stack([task.episode(np.random.default_rng(seed), task.episode_steps)[0] for seed in seeds])


def decode(latents: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Positions `(E, T, 2)` that a linear map, fitted on the first episodes, reads from latents `(E, T, D)`."""
    inputs = np.concatenate([latents, np.ones((*latents.shape[:2], 1))], axis=2)
    known, wanted = inputs[:FITTED].reshape(-1, inputs.shape[2]), positions[:FITTED].reshape(-1, 2)
    return inputs @ np.linalg.lstsq(known, wanted, rcond=None)[0]


def cumulative_rmse(decoded: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """RMSE(t) of trajectories `(…, T, 2)` over their first t frames, `(…, T)`."""
    squares = np.square(decoded - positions).sum(-1)
    return np.sqrt(squares.cumsum(-1) / np.arange(1, squares.shape[-1] + 1))


def encode(model: WorldModel, positions: np.ndarray) -> np.ndarray:
    """Latents `(E, T, D)` of what the model sees in states `(E, T, 2)`."""
    task = make_task(TASK, model)
    return np.stack([model.encode(np.stack([task.draw(state) for state in states])) for states in positions])


def readout(models: Path) -> dict[str, Any]:
    """What the figure needs: the shown episodes as they were and as they are read, and errors in px."""
    positions = trajectories()
    found: dict[str, Any] = {
        "episodes": EPISODES,
        "fitted": FITTED,
        "truth": {str(number): rounded(positions[number]) for number in SHOWN},
        "models": {},
    }
    for name in MODELS:
        model = load(str(models / f"{name}.onnx"), TASK, device="cpu")
        decoded = decode(encode(model, positions), positions)
        errors = cumulative_rmse(decoded[FITTED:], positions[FITTED:])[:, -1]
        found["models"][name] = {
            "sha256": model.sha256,
            "latent": model.latent_size,
            "rmse": round(float(np.sqrt(np.mean(errors**2))), 3),
            "by_episode": [round(float(error), 3) for error in errors],
            "decoded": {str(number): rounded(decoded[number]) for number in SHOWN},
        }
    return found


def rounded(positions: np.ndarray) -> list[list[float]]:
    return [[round(float(value), 1) for value in position] for position in positions]


def main(arguments: list[str] | None = None) -> int:
    settings = parse_command_line(Readout, __doc__, arguments)
    found = readout(settings.models)
    write(settings.out, found)
    for name, one in found["models"].items():
        print(f"{name}: RMSE {one['rmse']:.2f} px over episodes {FITTED}-{EPISODES - 1}")
    print(f"wrote {settings.out}")
    return 0


if __name__ == "__main__":
    run(main)
