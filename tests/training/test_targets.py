"""Corrected targets: what a finite pool pulls a population to is a Gaussian again."""

import pytest
import torch

from training.objectives.targets import by_rank, coefficients, corrected_quantiles, minimiser_moments, quantiles


@pytest.mark.parametrize(("pool", "a", "b"), [(32, 1.1023, 0.0832), (64, 1.0433, 0.0393), (128, 1.0198, 0.0200)])
def test_the_coefficients_are_those_of_the_derivation(pool, a, b):
    assert coefficients(pool) == (pytest.approx(a, abs=1e-4), pytest.approx(b, abs=1e-4))


@pytest.mark.parametrize("pool", [16, 32, 128, 512])
def test_the_minimiser_has_unit_scale_and_nearly_a_gaussians_kurtosis(pool):
    scale, kurtosis = minimiser_moments(corrected_quantiles(pool))
    plain_scale, plain_kurtosis = minimiser_moments(quantiles(pool))

    assert abs(scale - 1) < abs(plain_scale - 1) / 5
    assert abs(kurtosis - 3) < abs(plain_kurtosis - 3) / 3


@pytest.mark.parametrize("pool", [1, 2])
def test_pools_too_small_for_a_cubic_keep_their_quantiles(pool):
    assert torch.equal(corrected_quantiles(pool), quantiles(pool))


def free_particles(targets, size=24, count=2048, batch=64, steps=1500):
    """Latents that nothing but the regulariser moves, after many minibatches: mean and variance of |z|^2, scaled."""
    generator = torch.Generator().manual_seed(0)
    particles = torch.randn(count, size, generator=generator)
    for step in range(steps):
        chosen = torch.randperm(count, generator=generator)[:batch]
        units = torch.nn.functional.normalize(torch.randn(64, size, generator=generator), dim=1)
        x = particles[chosen] @ units.T
        pull = (x - by_rank(x, targets)) @ units / len(units) * size
        particles[chosen] -= 0.5 * (1 - step / steps) * pull
    radius = particles.square().sum(1)
    return float(radius.mean() / size), float(radius.var() / (2 * size))


def test_free_particles_get_their_scale_and_their_radial_spread_back():
    plain_scale, plain_spread = free_particles(quantiles(64))
    scale, spread = free_particles(corrected_quantiles(64))

    assert plain_scale < 0.97
    assert plain_spread < 0.35  # a thin shell
    assert abs(scale - 1) < 0.02
    assert abs(spread - 1) < abs(plain_spread - 1)
