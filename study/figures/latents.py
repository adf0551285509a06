"""Figures 1 and 2: how normal projections and radii are, at the end and over training, with the paper's weights."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from study.cells import Run, read
from study.figures.base import COLOURS, Numbers, Picture
from study.tables import paper
from study.tables.format import NAMES, gap, interval, spread

PLAN = "paper-weights"
ARMS = ("lewm", "qqworld")
KEPT = ("qq_rmse", "tail_rate", "radius_mean", "effective_rank", "qq_rmse_quantiles", "mean_quantiles")
NORMAL_TAIL = 0.1
PAPER_STEPS = 40_000


def gather_latents(cells: Path) -> tuple[str, Numbers]:
    """What the latents of every run are like, and QQ minus EP by training seed."""
    study = read(PLAN, cells)
    runs = {arm: study.runs(arm) for arm in ARMS}
    if not all(runs.values()):
        return study.progress, {}
    values = {
        arm: [{key: run.kept["normality"].get(key) for key in KEPT} for run in some] for arm, some in runs.items()
    }
    return study.progress, {"arms": values, "gaps": {key: _gap(runs, key) for key in ("qq_rmse", "tail_rate")}}


def _gap(runs: dict[str, list[Run]], key: str) -> tuple[float, float, float] | None:
    return gap(runs["qqworld"], runs["lewm"], lambda run: run.kept["normality"][key])


def draw_latents(figure: Figure, numbers: Numbers) -> None:
    """Violins of QQ RMSE over directions, tail rates beside the paper's, and QQ plots."""
    violins, tails, plot = figure.subplots(1, 3)
    for place, arm in enumerate(ARMS):
        runs, colour = numbers["arms"][arm], COLOURS[arm]
        levels = np.linspace(0, 1, 1001)
        kept = np.linspace(0, 1, len(runs[0]["qq_rmse_quantiles"]))
        values = np.concatenate([np.interp(levels, kept, run["qq_rmse_quantiles"]) for run in runs])
        for body in violins.violinplot([values], [place], showmeans=True, showextrema=False)["bodies"]:
            body.set_facecolor(colour)
        violins.plot(place, paper.QQ_RMSE[arm], "k*")
        tails.bar(place, np.mean([run["tail_rate"] for run in runs]), 0.6, color=colour, alpha=0.5)
        tails.plot([place] * len(runs), [run["tail_rate"] for run in runs], "o", color=colour)
        tails.plot(place, paper.TAIL_RATE[arm], "k*", label="the paper's mean" if place else None)
        if curves := [run["mean_quantiles"] for run in runs if run["mean_quantiles"]]:
            x = np.linspace(-3, 3, len(curves[0]))
            plot.plot(x, np.mean(curves, 0) - x, color=colour, label=NAMES[arm])
    for axes, title in ((violins, "QQ RMSE of 6,144 directions"), (tails, "P(r² > 90 % quantile of χ²)")):
        axes.set_xticks(range(len(ARMS)), [NAMES[arm] for arm in ARMS])
        axes.set_title(title)
    violins.set_ylim(0)
    tails.axhline(NORMAL_TAIL, color="black", linestyle=":", label="normal")
    tails.legend(fontsize="small")
    plot.axhline(0, color="black", linestyle=":", label="normal")
    plot.set(title="QQ plot, mean over directions", xlabel="normal quantile", ylabel="quantile minus the normal's")
    plot.legend(fontsize="small")


def latents_sentence(numbers: Numbers) -> str:
    """Whether QQ's latents are nearer to a normal, and what else moves the tail rate."""
    told = []
    for key, name, published in (
        ("qq_rmse", "QQ RMSE", paper.QQ_RMSE),
        ("tail_rate", "tail rate", paper.TAIL_RATE),
    ):
        ours, theirs = (spread([run[key] for run in numbers["arms"][arm]], 3) for arm in ("qqworld", "lewm"))
        told.append(
            f"{name} is {ours} with QQ and {theirs} with EP (paper {published['qqworld']} and {published['lewm']}), "
            f"{reproduced(numbers['gaps'][key])}"
        )
    radius, rank = (
        [np.mean([run[key] for run in numbers["arms"][arm]]) for arm in ("qqworld", "lewm")]
        for key in ("radius_mean", "effective_rank")
    )
    return (
        f"{'; '.join(told)}. Mean r²/d is {radius[0]:.2f} and {radius[1]:.2f}, effective rank {rank[0]:.1f} and "
        f"{rank[1]:.1f}: scale and anisotropy move the tail rate too."
    )


def reproduced(found: Sequence[float] | None) -> str:
    """Whether a measure is lower with QQ than with EP, as in the paper."""
    if found is None:
        return "one training run each, which shows no more than a direction"
    mean, low, high = found
    text = f"QQ minus EP {interval((mean, low, high))}: "
    if high < 0:
        return f"{text}reproduced"
    return f"{text}not reproduced" + (", though the direction is the paper's" if mean < 0 else "")


def gather_tails(cells: Path) -> tuple[str, Numbers]:
    """The error of the tail rate over the steps of every run."""
    study = read(PLAN, cells)
    arms = {
        arm: [
            [[point["step"], abs(point["tail_rate"] - NORMAL_TAIL)] for point in run.kept["curve"] if point["step"]]
            for run in study.runs(arm)
        ]
        for arm in ARMS
    }
    return study.progress, {"arms": arms} if all(arms.values()) else {}


def draw_tails(figure: Figure, numbers: Numbers) -> None:
    """A thin line for each run, a thick one for their mean."""
    axes = figure.subplots()
    for arm, runs in numbers["arms"].items():
        for run in runs:
            axes.plot(*zip(*run, strict=True), color=COLOURS[arm], alpha=0.3, linewidth=1)
        steps, errors = np.mean(runs, 0).T
        axes.plot(steps, errors, color=COLOURS[arm], linewidth=2, label=NAMES[arm])
    axes.set(xlabel="training step", ylabel="|tail rate - 0.1|", ylim=(0, None))
    axes.legend()
    axes.grid(alpha=0.3)


def tails_sentence(numbers: Numbers) -> str:
    """Whether QQ's tail is better calibrated throughout training, as in the paper."""
    ours, theirs = (np.mean(numbers["arms"][arm], 0) for arm in ("qqworld", "lewm"))
    better = int(np.sum(ours[:, 1] < theirs[:, 1]))
    same = "reproduced" if better == len(ours) else "not reproduced" if better == 0 else "reproduced in part"
    return (
        f"QQ's mean error is the smaller one at {better} of {len(ours)} measurements, and {ours[-1, 1]:.3f} against "
        f"{theirs[-1, 1]:.3f} after {ours[-1, 0]:.0f} steps. The paper finds it smaller throughout {PAPER_STEPS:,} "
        f"steps: {same}."
    )


PICTURES = (
    Picture(
        "figure-1", "Figure 1: latents at the end of training", (13, 4), gather_latents, draw_latents, latents_sentence
    ),
    Picture("figure-2", "Figure 2: the tail over training", (7, 4), gather_tails, draw_tails, tails_sentence),
)
