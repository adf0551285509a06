"""The quantile-quantile plot: its numbers for latents whose distribution is known."""

import numpy as np
import pytest

from agent.viewer.qq_plot import QQ, chi_squared_quantile


def test_gaussian_latents_lie_on_the_line_with_a_tenth_of_them_in_the_tail():
    qq = QQ.of(np.random.default_rng(0).standard_normal((4000, 32)))
    assert np.abs(qq.projected - qq.gaussian).max() < 0.35
    assert np.abs(qq.projected.mean(axis=0) - qq.gaussian).max() < 0.05
    assert qq.tail_rate == pytest.approx(0.1, abs=0.02)


def test_latents_that_are_too_wide_leave_the_line_unless_they_are_standardised():
    latents = 3 * np.random.default_rng(0).standard_normal((500, 8)) + 1
    assert QQ.of(latents).tail_rate > 0.5
    assert QQ.of(latents, standardise=True).tail_rate == pytest.approx(0.1, abs=0.05)


def test_collapsed_latents_have_no_spread_and_no_tail():
    qq = QQ.of(np.zeros((50, 8)))
    assert not qq.projected.any()
    assert qq.tail_rate == 0


@pytest.mark.parametrize(("degrees", "true"), [(2, 4.605), (8, 13.362), (192, 217.37)])
def test_the_chi_squared_quantile_is_near_the_true_one(degrees, true):
    assert chi_squared_quantile(0.9, degrees) == pytest.approx(true, rel=0.01)
