"""What a cell's latents are like: errors, normality as the paper measures it, shape, and probes of the state."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from envs.dataset.reader import Dataset
from models import WorldModel
from training.data.windows import rows_of, split
from training.measures import diagnostics, probes
from training.measures.held_out import HeldOut, encode

FRAMES, DIRECTIONS = 20_000, 6144
"""As the paper measures normality."""
VIOLIN = 41
"""Quantiles that are kept of the values of single directions."""
PROBE_SEEDS = 6
PROBE_FRAMES = 4096


@torch.no_grad()
def describe_latents(model: WorldModel, data: Dataset) -> dict[str, Any]:
    """Held-out errors, normality and shape of the latents, and probes, for `cell.json`."""
    model.eval()
    train, held = split(data)
    held_out = HeldOut(data, train, held, model.action_mean.cpu().numpy(), model.action_block)
    measured = held_out.measure(model)
    rng = np.random.default_rng(0)
    rows = rows_of(data, held)
    latents = encode(model, data.pixels[np.sort(rng.choice(rows, min(FRAMES, len(rows)), replace=False))])
    return {
        "held_out": {name: value for name, value in measured.items() if not name.startswith("r2_")},
        "normality": normality(latents),
        "probes": probe(model, data, train, held),
    }


def normality(latents: Tensor) -> dict[str, Any]:
    """The paper's statistics of latents `(M, D)`, and what tells scale, anisotropy and tails apart.

    A standard normal has 1 for both radii, kurtosis 3 and rank D; tail rates of different D are not to be compared.
    """
    size = latents.shape[1]
    by_direction: dict[str, Tensor] = {}
    measured: dict[str, Any] = diagnostics.normality(latents, DIRECTIONS, by_direction=by_direction)
    radius = latents.double().square().sum(1)
    levels = torch.linspace(0, 1, VIOLIN, dtype=torch.float64)
    spread = torch.quantile(by_direction["qq_rmse"].double(), levels)
    return {
        **measured,
        "frames": len(latents),
        "directions": DIRECTIONS,
        "radius_mean": float(radius.mean() / size),
        "radius_variance": float(radius.var() / (2 * size)),
        "kurtosis": float(by_direction["kurtosis"].mean()),
        "effective_rank": diagnostics.spread(latents)["effective_rank"],
        "qq_rmse_quantiles": [round(value, 4) for value in spread.tolist()],
    }


def probe(model: WorldModel, data: Dataset, train: np.ndarray, held: np.ndarray) -> dict[str, Any]:
    """MSE (of z-scored factors) and Pearson r of linear and MLP probes for each factor, a mean over probe seeds."""
    values, names = probes.factors(data.state, data.state_names)
    if not names:
        return {}
    scores: dict[str, list[np.ndarray]] = {}
    for seed in range(PROBE_SEEDS):
        rng = np.random.default_rng(seed)
        seen, unseen = (rng.choice(rows_of(data, some), PROBE_FRAMES) for some in (train, held))
        known, truth = (torch.from_numpy(values[rows]).float() for rows in (seen, unseen))
        latents = [encode(model, data.pixels[rows]).cpu() for rows in (seen, unseen)]
        for name, score in probes.errors(latents[0], known, latents[1], truth, seed).items():
            scores.setdefault(name, []).append(score)
    return {
        kind: {
            factor: [float(part) for part in parts] for factor, parts in zip(names, np.mean(all_seeds, 0), strict=True)
        }
        for kind, all_seeds in scores.items()
    }
