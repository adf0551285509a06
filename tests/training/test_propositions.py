"""The paper's propositions, numerically, on the code that trains."""

import math

import pytest
import torch

from training.objectives import lewm, qqworld
from training.objectives.targets import quantiles

torch.set_num_threads(1)  # the test workers already share the cores


def pull(statistic, bulk: torch.Tensor, outlier: float) -> float:
    """Gradient of a statistic with respect to one sample at `outlier` beside a fixed bulk."""
    x = torch.cat([torch.tensor([outlier], dtype=torch.float64), bulk]).requires_grad_()
    (gradient,) = torch.autograd.grad(statistic(x), x)
    return float(gradient[0])


def normal_quantiles(count: int) -> torch.Tensor:
    return quantiles(count)


# ---- Proposition 1: the restoring force of Epps-Pulley vanishes ------------------------------------------------------


def test_the_pull_of_epps_pulley_on_a_lone_sample_is_its_asymptotic_form_and_peaks_at_root_two():
    heights = torch.linspace(0.2, 5, 241, dtype=torch.float64)
    pulls = torch.tensor([pull(lewm.closed_form, heights[:0], float(h)) for h in heights])
    torch.testing.assert_close(pulls, (math.sqrt(math.pi) * heights * torch.exp(-heights.square() / 4)).float())
    assert float(heights[pulls.argmax()]) == pytest.approx(math.sqrt(2), abs=0.02)


def test_beside_a_bulk_the_pull_of_epps_pulley_tends_to_the_same_form_and_vanishes():
    bulk = torch.linspace(-1, 1, 127, dtype=torch.float64)
    for height in (6.0, 8.0, 10.0):
        asymptotic = math.sqrt(math.pi) * height * math.exp(-(height**2) / 4)
        assert pull(lewm.closed_form, bulk, height) == pytest.approx(asymptotic, rel=0.05)
    assert pull(lewm.closed_form, bulk, 10.0) < 1e-9


def test_the_pull_of_qq_grows_linearly_with_the_distance():
    bulk = torch.linspace(-1, 1, 127, dtype=torch.float64)
    highest = float(normal_quantiles(128)[-1])
    for height in (3.0, 10.0, 100.0, 1000.0):
        assert pull(qqworld.statistic, bulk, height) == pytest.approx(2 * (height - highest))


# ---- Proposition 2: the gradient of QQ -------------------------------------------------------------------------------


def test_the_gradient_of_qq_is_twice_the_distance_to_the_quantile_of_the_rank():
    x = torch.randn(50, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (gradient,) = torch.autograd.grad(qqworld.statistic(x), x)
    rank = x.detach().argsort().argsort()
    torch.testing.assert_close(gradient, 2 * (x.detach() - normal_quantiles(50)[rank]))


def test_the_gradient_of_qq_is_the_slope_of_its_value():
    x = torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    assert torch.autograd.gradcheck(qqworld.statistic, (x,), eps=1e-7, atol=1e-5)


# ---- Rank-switching boundaries ---------------------------------------------------------------------------------------


def test_a_tie_repels_with_the_slope_of_the_paper():
    quantile = normal_quantiles(6)
    others = torch.tensor([-3.0, -2.0, 2.0, 3.0], dtype=torch.float64)
    step = 1e-6

    def value(delta: float) -> float:
        return float(qqworld.statistic(torch.cat([others, others.new_tensor([0.4 - delta, 0.4 + delta])])))

    slope = (value(step) - value(0)) / step
    assert slope == pytest.approx(-2 * float(quantile[3] - quantile[2]), rel=1e-4)


def test_a_gradient_step_separates_tied_samples():
    x = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(qqworld.statistic(x), x)
    moved = x.detach() - 0.1 * gradient
    assert len(moved.unique()) == 8


# ---- Proposition 3: QQ controls EP, not the other way round ----------------------------------------------------------


def test_driving_qq_to_zero_drives_epps_pulley_to_zero():
    noise = torch.Generator().manual_seed(0)
    last = math.inf
    for count in (64, 256, 1024):
        exact = normal_quantiles(count)
        for size in (1.0, 0.1, 0.01, 0.0):
            x = exact + size * torch.randn(count, dtype=torch.float64, generator=noise) / math.sqrt(count)
            ep, qq = lewm.closed_form(x), qqworld.statistic(x)
            assert float(ep) <= 2 * (float(qq) + math.log(count) / count)
        assert float(ep) < last
        last = float(ep)
    assert last < 1e-3


def test_epps_pulley_can_vanish_while_qq_diverges():
    values = []
    for count in (64, 256, 1024, 2048):
        x = normal_quantiles(count)
        x[-1] = count  # one runaway sample
        values.append((float(lewm.closed_form(x)), float(qqworld.statistic(x))))
    ep, qq = zip(*values, strict=True)
    assert list(ep) == sorted(ep, reverse=True)
    assert ep[-1] < 2 * ep[0] * 64 / 2048  # falls as 1/N
    assert list(qq) == sorted(qq)
    assert qq[-1] > 1e6


# ---- The bias and variance of the queue (eq:queue-bias-variance) -----------------------------------------------------

BATCH, TRIALS = 32, 4000


def target_errors(length: int, drift: float, at: float, seed: int = 0) -> torch.Tensor:
    """Errors `(TRIALS,)` of the learning target at `at` when every older batch lies `drift` further to the left.

    The current distribution is standard normal, so that the ideal target is `at` itself.
    """
    noise = torch.Generator().manual_seed(seed)
    current = torch.randn(BATCH, TRIALS, generator=noise, dtype=torch.float64)
    current[0] = at
    age = torch.arange(1, length + 1, dtype=torch.float64).repeat_interleave(BATCH)[:, None]
    older = torch.randn(length * BATCH, TRIALS, generator=noise, dtype=torch.float64) - drift * age
    return qqworld.targets(current, older if length else None)[0] - at


def normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


@pytest.mark.parametrize("at", [0.0, 0.8])
def test_without_drift_the_variance_of_the_target_falls_as_one_over_the_pool(at):
    level = normal_cdf(at)
    density = math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    for length in (0, 1, 3, 7):
        law = level * (1 - level) / density**2 / (BATCH * (length + 1))
        assert float(target_errors(length, 0.0, at).var()) == pytest.approx(law, rel=0.15)


def test_the_bias_of_the_target_is_the_staleness_of_the_mixture():
    at, length = 0.3, 4
    density = math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    biases = []
    for drift in (0.0, 0.05, 0.1, 0.2):
        mixture = sum(normal_cdf(at + drift * age) for age in range(length + 1)) / (length + 1)
        bias = float(target_errors(length, drift, at).mean())
        assert bias == pytest.approx((mixture - normal_cdf(at)) / density, abs=0.03 + 0.1 * drift)
        biases.append(bias)
    assert biases == sorted(biases)
    assert biases[-1] > 0.3


def test_with_drift_the_best_queue_is_neither_empty_nor_long():
    errors = [float(target_errors(length, 0.06, 0.0).square().mean()) for length in range(9)]
    best = errors.index(min(errors))
    assert 1 <= best <= 4
    assert min(errors) < 0.6 * errors[0]
    assert min(errors) < 0.6 * errors[-1]
