"""Differences between objectives are differences between training runs."""

import math

import numpy as np
import pytest

from study.statistics import bootstrap, compare, detectable, power


def runs(rates, pairs=200, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.random(pairs) < rate for rate in rates]


def test_a_difference_is_the_mean_over_runs_with_its_interval():
    first, second = (
        [np.array([1, 1, 1, 0])] * 3,
        [np.array([1, 0, 0, 0]), np.array([1, 1, 0, 0]), np.array([0, 0, 1, 0])],
    )

    found = compare(first, second)

    assert found.mean == pytest.approx((0.5 + 0.25 + 0.5) / 3)
    assert found.low < found.mean < found.high
    assert found.high - found.mean == pytest.approx(4.302653 * found.std / math.sqrt(3), rel=1e-5)
    assert found.runs == 3


def test_many_pairs_of_one_run_are_no_evidence_about_an_objective():
    found = compare(runs([0.9], pairs=10_000), runs([0.7], pairs=10_000))

    assert math.isnan(found.p)
    assert math.isnan(found.low)


def test_equal_objectives_are_found_equivalent_and_different_ones_different():
    alike = compare(runs([0.9] * 8, 2000, 1), runs([0.9] * 8, 2000, 2))
    apart = compare(runs([0.9] * 8, 2000, 1), runs([0.8] * 8, 2000, 2))

    assert alike.p > 0.05
    assert alike.p_equivalent < 0.01
    assert apart.p < 0.001
    assert apart.p_equivalent > 0.9


def test_runs_that_vary_widen_the_bootstrap_more_than_pairs_do():
    steady = bootstrap(runs([0.8] * 6, 400, 1), runs([0.8] * 6, 400, 2))
    varying = bootstrap(runs([0.6, 1.0, 0.6, 1.0, 0.6, 1.0], 400, 1), runs([0.8] * 6, 400, 2))

    assert varying[1] - varying[0] > 2 * (steady[1] - steady[0])


def test_the_detectable_difference_is_found_eight_times_in_ten():
    rng = np.random.default_rng(0)
    difference = detectable(std=0.03, runs=6)
    samples = rng.normal(difference, 0.03, (4000, 6))
    t = samples.mean(1) / (samples.std(1, ddof=1) / math.sqrt(6))

    assert power(difference, 0.03, 6) == pytest.approx(0.8, abs=1e-3)
    assert (np.abs(t) > 2.5706).mean() == pytest.approx(0.8, abs=0.02)


def test_objectives_with_different_numbers_of_runs_cannot_be_paired():
    with pytest.raises(ValueError, match="as many runs of each"):
        compare(runs([0.5, 0.5]), runs([0.5]))
