"""Rates with their uncertainty: Wilson intervals, spread over seeds, McNemar's test for paired episodes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """A success rate with its Wilson 95 % interval; prints as `86% [79%, 91%]`."""

    rate: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, successes: Sequence[bool]) -> "Rate":
        """The rate of `successes`; without any nothing is known, so the interval is everything."""
        n = len(successes)
        if n == 0:
            return cls(math.nan, 0.0, 1.0, 0)
        rate = sum(map(bool, successes)) / n
        return cls(rate, *wilson(rate, n), n)

    def __str__(self) -> str:
        return f"{_percent(self.rate)} [{_percent(self.low)}, {_percent(self.high)}]"


def wilson(rate: float, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of true rates that a share `rate` of `n` trials is consistent with."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    return (0.0 if rate == 0 else max(0.0, centre - half)), (1.0 if rate == 1 else min(1.0, centre + half))


def mean_and_std(rates: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation over seeds, as in the paper's tables (the deviation divides by the number)."""
    mean = sum(rates) / len(rates)
    return mean, math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p-value that two agents are equally good, from the pairs that only one of them solved."""
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    tail = sum(math.comb(discordant, k) for k in range(min(only_first, only_second) + 1)) / 2**discordant
    return min(1.0, 2 * tail)


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.0f}%"
