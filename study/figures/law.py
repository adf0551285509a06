"""The law of bias and variance beside the targets' true error, the bias of a finite pool included."""

from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from study.figures.base import Numbers, Picture
from study.figures.bias_variance import BATCHES, QUEUES, exact, law, measured

FINE = np.linspace(-3, 3, 61)
COARSE = np.linspace(-3, 3, 13)
SMALL = 32
DRIFT = 0.05
"""How far a batch's mean lies from the next one's, in standard deviations: an example of staleness."""


def gather(cells: Path) -> tuple[str, Numbers]:
    """All numbers come from formulas: no cells are needed."""
    return "", _numbers()


@cache
def _numbers() -> Numbers:
    error = exact(FINE, SMALL)
    numbers: Numbers = {
        "law": law(FINE, SMALL),
        "mse": error.mse,
        "bias": error.bias,
        "variance": error.variance,
        "biases": [exact(FINE, SMALL, queue).bias for queue in QUEUES],
        "variances": [exact(FINE, SMALL, queue).variance for queue in QUEUES],
    }
    for name, drift in (("steady", 0.0), ("stale", DRIFT)):
        numbers[name] = [[_average(exact(FINE, n, k, drift).mse) for k in QUEUES] for n in BATCHES]
        numbers[f"{name} law"] = [[_average(law(FINE, n, k, drift)) for k in QUEUES] for n in BATCHES]
    return {name: np.array(values).tolist() for name, values in numbers.items()}


def _average(errors: np.ndarray) -> float:
    """The mean over a normal x, cut off at ±3: further out the law has no finite mean."""
    return float(np.average(errors, weights=stats.norm.pdf(FINE)))


def draw(figure: Figure, numbers: Numbers) -> None:
    """The error at each x, the bias by queue length, and the mean error of every pool."""
    parts, biases, means = figure.subplots(1, 3)
    dots = measured(COARSE, SMALL)
    parts.plot(FINE, numbers["law"], "k--", label="the law")
    parts.plot(FINE, numbers["mse"], "C0", label="squared error")
    parts.plot(FINE, numbers["variance"], "C2", label="variance")
    parts.plot(FINE, np.square(numbers["bias"]), "C3", label="bias²")
    for values, colour in ((dots.mse, "C0"), (dots.variance, "C2"), (dots.bias**2, "C3")):
        parts.plot(COARSE, values, "o", color=colour, markersize=3)
    parts.set(title=f"N = {SMALL}, no queue (dots: drawn pools)", xlabel="x", yscale="log", ylim=(1e-3, 4))
    for queue, bias in zip(QUEUES, numbers["biases"], strict=True):
        biases.plot(FINE, bias, f"C{queue}", label=f"K+1 = {queue + 1}")
    biases.set(title=f"bias, N = {SMALL}", xlabel="x")
    for number, batch in enumerate(BATCHES):
        lengths = [queue + 1 for queue in QUEUES]
        means.plot(lengths, numbers["steady"][number], f"C{number}o-", label=f"N = {batch}")
        means.plot(lengths, numbers["stale"][number], f"C{number}s:", label=f"N = {batch}, drift {DRIFT}")
        means.plot(lengths, numbers["steady law"][number], f"C{number}--", linewidth=0.8)
    means.set(title="mean squared error (dashed: the law)", xlabel="queue length K+1", yscale="log", xticks=lengths)
    for axes in (parts, biases, means):
        axes.legend(fontsize="small")
        axes.grid(alpha=0.3)


def sentence(numbers: Numbers) -> str:
    """What the law leaves out."""
    x = 2.5
    place = int(np.argmin(np.abs(FINE - x)))
    beyond = FINE[(FINE > 0) & (np.square(numbers["bias"]) > numbers["variance"])].min()
    bias, variance = ([one[place] for one in numbers[name]] for name in ("biases", "variances"))
    return (
        f"At N = {SMALL} and x = {x} the squared error is {numbers['mse'][place]:.3f} (bias {bias[0]:.2f}) and the law "
        f"says {numbers['law'][place]:.3f}. The law holds in the middle; beyond |x| = {beyond:.1f} the bias of the "
        "finite pool, which it leaves out, is larger than the variance. A queue of length "
        f"{QUEUES[-1] + 1} brings the bias at {x} to {bias[-1]:.2f} and the variance from {variance[0]:.3f} to "
        f"{variance[-1]:.3f}: in the tail it acts on bias."
    )


PICTURES = (
    Picture(
        "bias-variance", "Bias and variance of the targets (eq:queue-bias-variance)", (14, 4), gather, draw, sentence
    ),
)
