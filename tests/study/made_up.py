"""Cells as `study.cell` leaves them, with made-up outcomes: tables and figures can be tested without training."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from study import plan as plans
from study.cells import read
from training.config import Config

PROBED = ("agent_x", "agent_y", "block_x", "block_y", "cos block_angle", "sin block_angle")


def fill(
    cells: Path, name: str, rate: Callable[[Config], float] = lambda config: 0.8, keep: Callable[[str], bool] = bool
) -> Path:
    """Write the cells of the plan called `name` whose names `keep` accepts; the folder of all cells."""
    plan = read(name, cells).plan
    for cell in plan.cells:
        if keep(cell.name):
            config = plans.config_of(cell)
            path = cells / name / f"{cell.name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"plan": name, **made_up(plan, cell, config, rate(config))}))
    return cells


def made_up(plan: plans.Plan, cell: plans.Cell, config: Config, rate: float) -> dict[str, Any]:
    """One cell; the same cell always has the same numbers."""
    rng = np.random.default_rng(zlib.crc32(cell.name.encode()))
    pairs = plan.evaluation.episodes * len(plan.evaluation.seeds)
    qq = config.objective == "qqworld"
    quantiles = np.sort(rng.normal(0.12 if qq else 0.16, 0.01, 41))
    return {
        "name": cell.name,
        "task": cell.task,
        "settings": cell.settings,
        "training_mb": 100.0 + config.batch,
        "held_out": {"error_5": 0.1},
        "normality": {
            "qq_rmse": float(quantiles.mean()),
            "ks": 0.03 if qq else 0.04,
            "ep": 80.0 if qq else 120.0,
            "tail_rate": (0.12 if qq else 0.3) + rng.normal(0, 0.01),
            "frames": 20_000,
            "directions": 6144,
            "radius_mean": 1.0,
            "radius_variance": 0.8,
            "kurtosis": 2.9,
            "effective_rank": 20.0,
            "qq_rmse_quantiles": quantiles.tolist(),
            "mean_quantiles": np.linspace(-2.9, 2.9, 25).tolist(),
        },
        "probes": {kind: {factor: [0.02, 0.98] for factor in PROBED} for kind in ("linear", "mlp")},
        "evaluations": {
            planner: {when: letters(rng, rate, pairs) for when in ("first_hit", "final")}
            for planner in plan.evaluation.planners
        },
        "curve": [{"step": step, "tail_rate": 0.2 + 0.1 / step} for step in range(1, 9)],
        "run": {"network": {"latent": 32}},
    }


def letters(rng: np.random.Generator, rate: float, pairs: int) -> str:
    """Outcomes of which exactly the share `rate` succeeds, in some order."""
    return "".join(rng.permutation(["1"] * round(rate * pairs) + ["0"] * (pairs - round(rate * pairs))))
