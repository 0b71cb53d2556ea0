"""Ratios and their intervals, by hand and by coverage."""

import numpy as np
import pytest

from benchmarks.attribution.statistics.shift import Shift, shift_between


def test_ratio_is_the_median_of_pairwise_ratios():
    shift = shift_between(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0]))
    assert shift.ratio == pytest.approx(2.0)
    # Three against three can never be sure: the interval is all that was seen.
    assert (shift.low, shift.high) == (pytest.approx(0.5), pytest.approx(8.0))
    assert not shift.moved


def test_interval_covers_the_true_ratio_in_95_of_100():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        shift = shift_between(rng.lognormal(0, 0.02, 40), 1.03 * rng.lognormal(0, 0.02, 30))
        covered += shift.low <= 1.03 <= shift.high
    assert 368 <= covered <= 396


def test_no_ratio_of_values_that_are_not_positive():
    assert shift_between(np.array([0.0, 1.0]), np.array([1.0])) == Shift(None, None, None)


def test_a_wider_error_gives_a_wider_interval():
    left, right = np.linspace(1, 2, 30), np.linspace(1, 2, 30)
    assert shift_between(left, right, 2.0).high > shift_between(left, right).high
