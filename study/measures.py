"""What a cell's latents are like: errors, normality as the paper measures it, shape, and probes of the state."""

from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

import models
from envs.dataset.reader import Dataset
from models import WorldModel
from study.plan import Measures
from training.config import Config
from training.data.windows import rows_of, split
from training.measures import diagnostics, probes
from training.measures.held_out import HeldOut, encode
from training.measures.step_time import peak_mb
from training.objectives.base import directions
from training.phases.learner import Learner
from training.phases.trainer import build

VIOLIN = 41
"""Quantiles that are kept of the values of single directions."""
PLOT_DIRECTIONS = 256
PLOT = np.linspace(-3, 3, 25)
"""Normal quantiles at which a QQ plot has its points, and the directions that each is a mean over."""


@torch.no_grad()
def describe_latents(model: WorldModel, data: Dataset, sizes: Measures) -> dict[str, Any]:
    """Held-out errors, normality and shape of the latents, and probes, for `cell.json`."""
    model.eval()
    train, held = split(data)
    held_out = HeldOut(data, train, held, model.action_mean.cpu().numpy(), model.action_block)
    measured = held_out.measure(model)
    rng = np.random.default_rng(0)
    rows = rows_of(data, held)
    latents = encode(model, data.pixels[np.sort(rng.choice(rows, min(sizes.frames, len(rows)), replace=False))])
    return {
        "held_out": {name: value for name, value in measured.items() if not name.startswith("r2_")},
        "normality": normality(latents, sizes.directions),
        "probes": probe(model, data, train, held, sizes),
    }


def normality(latents: Tensor, count: int) -> dict[str, Any]:
    """The paper's statistics of latents `(M, D)` along `count` directions, and what tells scale, shape and tails apart.

    A standard normal has 1 for both radii, kurtosis 3 and rank D; tail rates of different D are not to be compared.
    """
    size = latents.shape[1]
    by_direction: dict[str, Tensor] = {}
    measured: dict[str, Any] = diagnostics.normality(latents, count, by_direction=by_direction)
    radius = latents.double().square().sum(1)
    levels = torch.linspace(0, 1, VIOLIN, dtype=torch.float64)
    spread = torch.quantile(by_direction["qq_rmse"].double(), levels)
    return {
        **measured,
        "frames": len(latents),
        "directions": count,
        "radius_mean": float(radius.mean() / size),
        "radius_variance": float(radius.var() / (2 * size)),
        "kurtosis": float(by_direction["kurtosis"].mean()),
        "effective_rank": diagnostics.spread(latents)["effective_rank"],
        "qq_rmse_quantiles": [round(value, 4) for value in spread.tolist()],
        "mean_quantiles": [round(value, 4) for value in mean_quantiles(latents).tolist()],
    }


def mean_quantiles(latents: Tensor) -> Tensor:
    """Where a projection of latents `(M, D)` has the quantiles that a standard normal has at `PLOT`: a QQ plot."""
    units = directions(PLOT_DIRECTIONS, latents.shape[1], torch.Generator().manual_seed(0), latents)
    levels = torch.special.ndtr(torch.from_numpy(PLOT)).to(latents)
    return torch.quantile(latents @ units.T, levels, dim=0).mean(1)


def probe(model: WorldModel, data: Dataset, train: np.ndarray, held: np.ndarray, sizes: Measures) -> dict[str, Any]:
    """MSE (of z-scored factors) and Pearson r of linear and MLP probes for each factor, a mean over probe seeds."""
    values, names = probes.factors(data.state, data.state_names)
    if not names:
        return {}
    scores: dict[str, list[np.ndarray]] = {}
    for seed in range(sizes.probe_seeds):
        rng = np.random.default_rng(seed)
        seen, unseen = (rng.choice(rows_of(data, some), sizes.probe_frames) for some in (train, held))
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


def training_memory(config: Config, action_dim: int) -> float | None:
    """Peak memory in MB that training steps add to a process that has not trained yet; None where nothing tells it.

    The pictures are noise, so that a dataset mapped into memory does not count; the queue is filled first.
    """
    network, block = config.network_settings(), models.PRESETS[config.preset].action_block * action_dim
    model = build(config.preset, action_dim, network)
    objective = config.make_objective(latent=model.latent, action_size=block)
    learner = Learner(model, objective, config.open_loop, config.teacher_forcing, config.inverse)
    optimiser = torch.optim.AdamW(learner.parameters(), fused=True)
    shape = (config.batch, objective.frames)
    rng = np.random.default_rng(0)
    pixels = torch.from_numpy(rng.integers(256, size=(*shape, model.image_size, model.image_size, 3), dtype=np.uint8))
    actions = torch.from_numpy(rng.normal(size=(*shape, block)).astype(np.float32))
    with suppress(OSError):
        before = peak_mb()
        for _ in range((config.regulariser.queue or 0) + 2):
            optimiser.zero_grad()
            learner(pixels, actions, torch.Generator()).total.backward()
            optimiser.step()
        return peak_mb() - before
    return None
