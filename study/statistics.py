"""What runs say about objectives: differences by training run, equivalence, and what could have been found.

A training run is the unit: pairs within one run share its weights and say nothing about another run of the objective.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
MARGIN = 0.05
"""A difference of success rates below this many is taken to be none (equivalence)."""
RESAMPLES = 4000


@dataclass(frozen=True)
class Difference:
    """First minus second objective, over training seeds that both have."""

    mean: float
    low: float
    high: float
    """95 % interval of Student's t over runs, like `low`."""
    p: float
    """Of no difference, two-sided paired t."""
    p_equivalent: float
    """Of a difference of at least `MARGIN`: small means that there is none that large (two one-sided t tests)."""
    boot_low: float
    boot_high: float
    """95 % interval of a two-level bootstrap, over runs and over pairs within them, like `boot_low`."""
    detectable: float
    """The true difference that so many runs, this variable, find 8 times in 10."""
    runs: int
    std: float
    """Standard deviation of the difference between two runs of the same seed."""


def compare(first: Sequence[np.ndarray], second: Sequence[np.ndarray], margin: float = MARGIN) -> Difference:
    """Compare two objectives by their runs, paired by training seed; a run is its outcomes `(pairs,)`, 0 or 1.

    Runs of the same seed share their data order, and all share their pairs.
    """
    if len(first) != len(second) or not first:
        raise ValueError(
            f"a paired comparison needs as many runs of each, at least one, got {len(first)}, {len(second)}"
        )
    differences = np.array([np.mean(one) - np.mean(other) for one, other in zip(first, second, strict=True)])
    runs, mean = len(differences), float(differences.mean())
    nan = float("nan")
    boot = bootstrap(first, second)
    if runs < 2:
        return Difference(mean, nan, nan, nan, nan, *boot, nan, runs, nan)
    std = float(differences.std(ddof=1))
    error = std / np.sqrt(runs)
    freedom = runs - 1
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * error)
    if error == 0:
        p, p_equivalent = (1.0 if mean == 0 else 0.0), (0.0 if abs(mean) < margin else 1.0)
    else:
        p = float(2 * stats.t.sf(abs(mean) / error, freedom))
        p_equivalent = float(
            max(stats.t.sf((mean + margin) / error, freedom), stats.t.sf((margin - mean) / error, freedom))
        )
    return Difference(mean, mean - half, mean + half, p, p_equivalent, *boot, detectable(std, runs), runs, std)


def bootstrap(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """95 % interval of the difference when runs are drawn again, and the same pairs within both runs of a seed.

    A pair's difference is -1, 0 or 1, so drawing the pairs of a run again is one draw of three counts.
    """
    rng = np.random.default_rng(seed)
    gaps = [np.asarray(one, int) - np.asarray(other, int) for one, other in zip(first, second, strict=True)]
    pairs = np.array([len(gap) for gap in gaps])
    shares = np.array([[np.mean(gap == value) for value in (-1, 0, 1)] for gap in gaps])
    chosen = rng.integers(len(gaps), size=(resamples, len(gaps)))
    worse, _, better = np.moveaxis(rng.multinomial(pairs[chosen], shares[chosen]), -1, 0)
    means = ((better - worse) / pairs[chosen]).mean(1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def power(difference: float, std: float, runs: int, level: float = 1 - CONFIDENCE) -> float:
    """How often a paired t test over `runs` finds a true `difference` whose standard deviation is `std`."""
    if runs < 2:
        return 0.0
    if std == 0:
        return 1.0 if difference else level
    shift, freedom = abs(difference) / std * np.sqrt(runs), runs - 1
    edge = stats.t.ppf(1 - level / 2, freedom)
    wrong_side = np.nan_to_num(stats.nct.cdf(-edge, freedom, shift))  # scipy gives up where it is next to nothing
    return float(stats.nct.sf(edge, freedom, shift) + wrong_side)


def detectable(std: float, runs: int, wanted: float = 0.8) -> float:
    """The least difference that is found with power `wanted`."""
    if runs < 2:
        return float("nan")
    low, high = 0.0, std / np.sqrt(runs) or 1e-9
    while power(high, std, runs) < wanted:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, std, runs) >= wanted else (middle, high)
    return float(high)
