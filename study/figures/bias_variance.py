"""How far the targets of a finite pool are from the ideal ones: bias, variance and squared error.

    python -m study.figures.bias_variance

prints them beside the paper's law (eq:queue-bias-variance). A sample x of a standard normal should be pulled to x. Its
target is the normal quantile of its rank among M = N (K + 1) samples, so it is off even when all batches have the same
distribution: the ranks next to the ends stand for all that lies beyond them. The law omits this bias of a finite pool.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from agent.evaluation.summary import lines_of
from envs.errors import parse_command_line, run

BATCHES = (32, 64, 128)
QUEUES = (0, 1, 2, 3)
POINTS = (0.0, 1.0, 2.0, 2.5, 3.0)
DRAWS = 20_000


@dataclass(frozen=True)
class BiasVariance:
    """Bias, variance and squared error of the targets of a finite pool, beside the paper's law."""


@dataclass(frozen=True)
class Error:
    """What is wrong with the targets of samples x `(X,)`."""

    bias: np.ndarray
    variance: np.ndarray

    @property
    def mse(self) -> np.ndarray:
        """Mean squared error."""
        return self.bias**2 + self.variance


def quantiles(pool: int) -> np.ndarray:
    """The targets of the ranks in a pool, `(M,)`."""
    return stats.norm.ppf((np.arange(pool) + 0.5) / pool)


def law(x: np.ndarray, batch: int, queue: int = 0, drift: float = 0.0) -> np.ndarray:
    """The squared error that the paper states; batches `drift` apart on average are stale (eq:queue-bias-variance)."""
    level = stats.norm.cdf(x)
    mixture = np.mean([stats.norm.cdf(x - age * drift) for age in range(queue + 1)], axis=0)
    variance = level * (1 - level) / (batch * (queue + 1))
    return (variance + (mixture - level) ** 2) / stats.norm.pdf(x) ** 2


def exact(x: np.ndarray, batch: int, queue: int = 0, drift: float = 0.0) -> Error:
    """Bias and variance without approximation: how many of each batch lie below x is binomial, and batches add up."""
    targets = quantiles(batch * (queue + 1))
    moments = []
    for value in x:
        ranks = np.ones(1)
        for age in range(queue + 1):
            others = batch - (age == 0)  # x itself is one of the current batch
            below = stats.binom.pmf(np.arange(others + 1), others, stats.norm.cdf(value - age * drift))
            ranks = np.convolve(ranks, below)
        mean = ranks @ targets
        moments.append((mean - value, ranks @ (targets - mean) ** 2))
    bias, variance = np.array(moments).T
    return Error(bias, variance)


def measured(x: np.ndarray, batch: int, queue: int = 0, drift: float = 0.0, draws: int = DRAWS, seed: int = 0) -> Error:
    """The same from pools that are drawn and ranked."""
    rng = np.random.default_rng(seed)
    ages = np.repeat(np.arange(queue + 1), batch)[1:]
    others = rng.normal(size=(draws, len(ages))) + drift * ages
    targets = quantiles(batch * (queue + 1))
    found = np.stack([targets[(others < value).sum(1)] for value in x])
    return Error(found.mean(1) - x, found.var(1))


def rows() -> list[list[str]]:
    """The errors at some points for every pool, and the heading first."""
    found = [["batch N", "queue length K+1", "x", "bias", "variance", "squared error", "the law says"]]
    x = np.array(POINTS)
    for batch in BATCHES:
        for queue in QUEUES:
            error, stated = exact(x, batch, queue), law(x, batch, queue)
            for number, value in enumerate(POINTS):
                parts = (error.bias[number], error.variance[number], error.mse[number], stated[number])
                found.append(
                    [str(batch), str(queue + 1), f"{value:g}", *(f"{round(part, 3) + 0:.3f}" for part in parts)]
                )
    return found


def main(arguments: list[str] | None = None) -> int:
    parse_command_line(BiasVariance, __doc__, arguments)
    print(*lines_of(rows()), sep="\n")
    return 0


if __name__ == "__main__":
    run(main)
