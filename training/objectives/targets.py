"""What samples are pulled to by their rank: Gaussian quantiles, plain or corrected for the bias of a finite pool.

A sample's rank in a pool of M is random, so what it is pulled to on average is not the quantile q of its own level but
a smoothed one, which stops at the outermost q: the best distribution has thin tails. The corrected targets
T = a q + b (q^3 - 3 q) are such that, smoothed, they have the scale and the third Hermite coefficient of a Gaussian
(docs/objectives.md derives them).
"""

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from scipy import stats
from torch import Tensor

GRID = np.linspace(-8.5, 8.5, 3401)
Kind = Literal["plain", "corrected"]


def quantiles(count: int) -> Tensor:
    """Standard normal quantiles at (n - 0.5) / count, n = 1 … count: `(count,)`."""
    levels = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    return torch.special.ndtri(levels)


@lru_cache
def coefficients(pool: int) -> tuple[float, float]:
    """(a, b) for a pool of M samples: E[x T] = 1 and E[(x^3 - 3x) T] = 0 for a standard normal x and its mean target.

    About (1.0198, 0.0200) for 128 samples and (1.1023, 0.0832) for 32.
    """
    if pool < 3:  # two quantiles carry no cubic
        return 1.0, 0.0
    q = quantiles(pool).numpy()
    smoothed = smooth(np.stack([q, q**3 - 3 * q], axis=1))
    density = stats.norm.pdf(GRID) * (GRID[1] - GRID[0])
    hermite = np.stack([GRID, GRID**3 - 3 * GRID])
    a, b = np.linalg.solve((hermite * density) @ smoothed, [1.0, 0.0])
    return float(a), float(b)


def smooth(targets: np.ndarray) -> np.ndarray:
    """The mean target `(G, ...)` of a sample at each point of `GRID`, for targets `(M, ...)` by rank.

    A sample at level u has 1 + Bin(M - 1, u) as its rank among M: a Bernstein polynomial of the targets.
    """
    others = len(targets) - 1
    ranks = np.arange(len(targets))
    return stats.binom.pmf(ranks, others, stats.norm.cdf(GRID)[:, None]) @ targets


@lru_cache
def corrected_quantiles(pool: int) -> Tensor:
    """The corrected targets of a pool of M samples, in the order of their ranks: `(M,)`."""
    a, b = coefficients(pool)
    q = quantiles(pool)
    return a * q + b * (q**3 - 3 * q)


def minimiser_moments(targets: Tensor) -> tuple[float, float]:
    """Scale and kurtosis of the distribution that targets by rank `(M,)` pull a population to."""
    mean = smooth(targets.numpy()[:, None])[:, 0]
    density = stats.norm.pdf(GRID) * (GRID[1] - GRID[0])
    second = float((mean**2 * density).sum())
    return second**0.5, float((mean**4 * density).sum() / second**2)


def by_rank(x: Tensor, values: Tensor) -> Tensor:
    """Hand out `values` `(N,)` by rank: the smallest sample of `x` `(N, …)` gets the first, `(N, …)`."""
    x = x.detach().movedim(0, -1).contiguous()
    order = torch.argsort(x, dim=-1, stable=True)
    return torch.empty_like(x).scatter_(-1, order, values.to(x).expand_as(x)).movedim(-1, 0)
