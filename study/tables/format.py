"""Numbers of runs as text: rates with their spread, differences with their intervals, and what follows from them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from agent.evaluation.statistics import Rate
from agent.evaluation.summary import lines_of
from study.cells import Run
from study.statistics import CONFIDENCE, MARGIN, Difference

NAMES = {
    "qqworld": "QQWorld",
    "qqworld corrected": "QQWorld, corrected targets",
    "lewm": "LeWM (EP)",
    "sub-jepa": "Sub-JEPA",
    "sd-jepa": "SD-JEPA",
    "smwm": "SMWM",
    "pldm": "PLDM",
    "vicreg": "VICReg",
    "visreg": "VISReg",
    "none": "no regulariser",
}
NONE = "-"

Rows = list[list[str]]


@dataclass(frozen=True)
class Table:
    """A table of the page; without rows nothing is there to show yet."""

    title: str
    progress: str
    """How many cells there are, empty if all are."""
    parts: tuple[tuple[str, Rows], ...]
    """Captions and rows, the first of them the heading."""
    sentence: str
    """What is reproduced, and what is not."""

    def markdown(self) -> str:
        """The table as a section of the page."""
        lines = [f"## {self.title}", ""]
        lines += [self.progress, ""] if self.progress else []
        for caption, rows in self.parts:
            if len(rows) > 1:
                lines += [caption, "", *lines_of(rows), ""]
        lines += [self.sentence, ""] if self.sentence else []
        return "\n".join(lines)


def success(runs: Sequence[Run], planner: str, measure: str) -> str:
    """Mean over runs ± their standard deviation, and the Wilson interval of all their pairs: `93.7 ± 3.4 [90.1, 96.0]`.

    The interval knows of pairs only, not of how much runs differ.
    """
    if not runs:
        return NONE
    outcomes = [run.outcomes(planner, measure) for run in runs]
    pooled = Rate.of(np.concatenate(outcomes).tolist())
    return f"{spread([100 * one.mean() for one in outcomes], 1)} [{100 * pooled.low:.1f}, {100 * pooled.high:.1f}]"


def spread(values: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation (with n - 1); a single value stands alone."""
    if not values:
        return NONE
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def normality(runs: Sequence[Run], key: str) -> list[float]:
    """A measure of the latents of each run; EP as it would be with 20,000 latents, with whose number it grows."""
    found: list[dict[str, Any]] = [run.kept["normality"] for run in runs]
    return [one[key] * (20_000 / one["frames"] if key == "ep" else 1) for one in found]


def points(difference: Difference) -> str:
    """A difference of success rates with its interval: `+0.3 points [-1.8, 2.4]`."""
    mean = f"{100 * difference.mean:+.1f} points"
    if math.isnan(difference.low):
        return mean
    return f"{mean} [{100 * difference.low:.1f}, {100 * difference.high:.1f}]"


def verdict(difference: Difference, first: str, second: str) -> str:
    """What a difference of success rates allows to say."""
    if difference.runs < 2:
        return "one training run of each says nothing about the objectives"
    excluded = f"a difference of {100 * MARGIN:.0f} points is excluded (p = {difference.p_equivalent:.2g})"
    if difference.low > 0 or difference.high < 0:
        better = first if difference.low > 0 else second
        return f"{better} is better" + (f", but {excluded}" if difference.p_equivalent < 0.05 else "")
    if difference.p_equivalent < 0.05:
        return f"no difference is found, and {excluded}"
    return (
        f"undecided, because {difference.runs} runs of each find a difference of {100 * difference.detectable:.1f} "
        "points 8 times in 10, not a smaller one"
    )


def gap(ours: Sequence[Run], theirs: Sequence[Run], value: Callable[[Run], float]) -> tuple[float, float, float] | None:
    """Mean difference of a value by training seed, and its 95 % t interval; None with fewer than two seeds."""
    first, second = ({run.config.seed: value(run) for run in runs} for runs in (ours, theirs))
    gaps = np.array([first[seed] - second[seed] for seed in first if seed in second])
    if len(gaps) < 2:
        return None
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return float(gaps.mean()), float(gaps.mean() - half), float(gaps.mean() + half)


def interval(found: tuple[float, float, float]) -> str:
    """A difference with its interval: `+0.013 [-0.002, 0.028]`."""
    return f"{found[0]:+.3f} [{found[1]:.3f}, {found[2]:.3f}]"


def p_value(value: float) -> str:
    """A p-value, or "-" where one run has none."""
    return NONE if math.isnan(value) else f"{value:.2g}"


def both(first: float, second: float, scale: float = 100) -> str:
    """An interval, or "-" where one run has none."""
    return NONE if math.isnan(first) else f"[{scale * first:.1f}, {scale * second:.1f}]"


def listed(items: Sequence[str]) -> str:
    """Words as people list them."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
