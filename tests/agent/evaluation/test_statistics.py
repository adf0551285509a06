"""Rates and their uncertainty, against published values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.evaluation.statistics import Rate, mcnemar, mean_and_std, wilson


@pytest.mark.parametrize(
    ("rate", "n", "low", "high"),
    [(0.90, 50, 0.79, 0.96), (0.74, 50, 0.60, 0.84), (0.90, 500, 0.87, 0.92), (0.74, 1000, 0.71, 0.77)],
)
def test_wilson_intervals_agree_with_known_ones(rate, n, low, high):
    assert wilson(rate, n) == (pytest.approx(low, abs=0.005), pytest.approx(high, abs=0.005))


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_rate_and_stays_between_0_and_1(outcome):
    successes, n = outcome
    rate = Rate.of([True] * successes + [False] * (n - successes))
    assert 0 <= rate.low <= rate.rate <= rate.high <= 1
    assert rate.low < rate.high


def test_a_rate_prints_as_percentages():
    assert str(Rate.of([True] * 86 + [False] * 14)) == "86% [78%, 91%]"


def test_nothing_observed_is_nothing_known():
    assert str(Rate.of([])) == "- [0%, 100%]"


def test_mean_and_deviation_over_seeds_are_those_of_the_published_tables():
    assert mean_and_std([98, 98, 92]) == (96, pytest.approx(2.83, abs=0.01))  # LeWM, Push-T


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (0, 5, 0.0625), (1, 9, 0.021484375), (9, 1, 0.021484375), (0, 20, 2 / 2**20)],
)
def test_mcnemar_is_the_exact_binomial_test_on_the_discordant_pairs(only_first, only_second, p):
    assert mcnemar(only_first, only_second) == pytest.approx(p)
