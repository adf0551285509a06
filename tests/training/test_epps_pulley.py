"""The Epps-Pulley statistic: LeWM's quadrature and its closed form."""

import numpy as np
import pytest
import torch

from tests.training.objective_losses import generator
from training.objectives import lewm


def test_epps_pulley_is_lewms_quadrature():
    x = np.random.default_rng(0).normal(size=(128, 3))
    t = np.linspace(0, 3, 17)
    weights = np.where((t == 0) | (t == 3), 3 / 16, 2 * 3 / 16) * np.exp(-(t**2) / 2)
    angles = x[..., None] * t
    gap = (np.cos(angles).mean(0) - np.exp(-(t**2) / 2)) ** 2 + np.sin(angles).mean(0) ** 2
    expected = 128 * (gap * weights).sum(-1)
    np.testing.assert_allclose(lewm.statistic(torch.tensor(x)), expected, rtol=1e-6)


@pytest.mark.parametrize(("mean", "scale"), [(0, 1), (0.5, 1), (0, 0.3), (0, 2)])
def test_the_quadrature_agrees_with_the_closed_form(mean, scale):
    x = mean + scale * torch.randn(512, 8, generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(lewm.statistic(x), lewm.closed_form(x), rtol=0.03, atol=0.01)


def test_the_closed_form_is_the_integral_of_the_characteristic_functions():
    x = np.random.default_rng(0).normal(0.3, 1.4, size=40)
    t = np.linspace(-12, 12, 40_001)
    gap = np.abs(np.exp(1j * t[:, None] * x).mean(1) - np.exp(-(t**2) / 2)) ** 2
    integral = 40 * np.trapezoid(gap * np.exp(-(t**2) / 2), t)
    assert float(lewm.closed_form(torch.tensor(x))) == pytest.approx(integral, rel=1e-6)
