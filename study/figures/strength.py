"""Dose and response: success and normality against the effective strength, every run and the mean with its interval."""

import itertools
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from study.cells import Run, read
from study.figures.base import COLOURS, Numbers, Picture
from study.statistics import CONFIDENCE
from study.tables.format import NAMES, normality
from study.tables.latents import SHAPE
from study.tables.strength import strength

LATENTS = ("ks", "qq_rmse", "tail_rate", "radius_variance")


def gather(cells: Path) -> tuple[str, Numbers]:
    """By panel, arm and strength, the value of every run."""
    study = read("dose-response", cells)
    planners = list(study.plan.evaluation.planners)
    panels: Numbers = {}
    for arm in study.arms():
        ordered = sorted(study.runs(arm), key=strength)
        for dose, some in itertools.groupby(ordered, key=strength):
            runs = list(some)
            found = {f"success, {planner}": [_rate(run, planner) for run in runs] for planner in planners}
            found |= {SHAPE[key][0]: normality(runs, key) for key in LATENTS}
            for panel, values in found.items():
                panels.setdefault(panel, {}).setdefault(arm, []).append([dose, values])
    return study.progress, {"panels": panels} if panels else {}


def _rate(run: Run, planner: str) -> float:
    return float(run.outcomes(planner, "first_hit").mean())


def draw(figure: Figure, numbers: Numbers) -> None:
    """A panel for each measure."""
    panels = numbers["panels"]
    for axes, (title, arms) in zip(figure.subplots(2, -(-len(panels) // 2)).flat, panels.items(), strict=False):
        for place, (arm, doses) in enumerate(arms.items()):
            _line(axes, arm, doses, shift=1 + 0.03 * (place - 1.5))
        axes.set(title=title, xscale="log", xlabel="effective strength")
        axes.set_xticks(doses_of(arms), [f"{dose:g}" for dose in doses_of(arms)])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")


def doses_of(arms: Numbers) -> list[float]:
    """The strengths that any arm has."""
    return sorted({dose for doses in arms.values() for dose, _ in doses})


def _line(axes: Axes, arm: str, doses: list[tuple[float, list[float]]], shift: float) -> None:
    """Dots for runs, a line through their means, bars for Student's 95 % interval; arms stand side by side."""
    colour = COLOURS.get(arm, "C7")
    x = [dose * shift for dose, _ in doses]
    means = [np.mean(values) for _, values in doses]
    for place, (_, values) in zip(x, doses, strict=True):
        axes.plot([place] * len(values), values, ".", color=colour, alpha=0.4)
    axes.errorbar(x, means, [half_width(values) for _, values in doses], color=colour, capsize=2, label=NAMES[arm])


def half_width(values: list[float]) -> float:
    """Half of Student's 95 % interval of a mean; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * error)


def sentence(numbers: Numbers) -> str:
    """How much strength does, beside how much the choice between QQ and EP does."""
    told = ["Dots are training runs, bars Student's 95 % intervals of their mean."]
    for panel, arms in numbers["panels"].items():
        means = {arm: {dose: float(np.mean(values)) for dose, values in doses} for arm, doses in arms.items()}
        shared = sorted(set(means.get("qqworld", {})) & set(means.get("lewm", {})))
        if panel.startswith("success, lewm") or panel == SHAPE["ks"][0]:
            for arm in ("qqworld", "lewm") if len(shared) > 1 else ():
                ends = [means[arm][dose] for dose in (shared[0], shared[-1])]
                told.append(f"{NAMES[arm]}: {panel} {ends[0]:.3f} at {shared[0]:g}, {ends[1]:.3f} at {shared[-1]:g}.")
            if shared:
                apart = max(shared, key=lambda dose: abs(means["qqworld"][dose] - means["lewm"][dose]))
                gap = means["qqworld"][apart] - means["lewm"][apart]
                told.append(f"At equal strength they are {gap:+.3f} apart at most (at {apart:g}).")
    return " ".join(told)


PICTURES = (
    Picture(
        "dose-response",
        "Success and normality against strength",
        (13, 7),
        gather,
        draw,
        sentence,
    ),
)
