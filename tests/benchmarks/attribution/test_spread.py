from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.spread import Figure, Interval, difference, median_figure, ratio


def test_the_stated_confidence_is_the_true_one():
    """Each sample lies below the median or above it with equal chance: count the patterns that the interval covers."""
    for count in range(2, 13):
        spread = median_figure(list(range(count))).interval
        patterns = list(itertools.product((False, True), repeat=count))
        covered = sum(
            spread.low < below <= spread.high for below in (sum(pattern) for pattern in patterns)
        )  # with `below` samples under it, the median lies between the ranks below - 1 and below
        assert spread.confidence == pytest.approx(covered / len(patterns))


def test_many_samples_give_a_narrow_interval_and_few_say_how_little_they_reach():
    assert median_figure([5.0, 1.0, 3.0]) == Figure(3.0, Interval(1.0, 5.0, 0.75))
    twenty = median_figure([float(value) for value in range(20)])
    assert (twenty.interval.low, twenty.interval.high) == (5.0, 14.0)
    assert twenty.interval.confidence >= 0.95


def test_one_sample_has_no_interval_and_none_needs_a_fallback():
    assert median_figure([4]) == Figure(4.0)
    assert median_figure([], 7) == Figure(7.0)
    with pytest.raises(ValueError, match="no samples"):
        median_figure([])


_SAMPLES = st.lists(st.integers(1, 1000), min_size=1, max_size=9)


@given(_SAMPLES, _SAMPLES)
def test_quotient_and_difference_lie_inside_their_intervals(first, second):
    a, b = median_figure(first), median_figure(second)
    for combined, value in ((ratio(a, b), a.value / b.value), (difference(a, b), a.value - b.value)):
        assert combined.value == pytest.approx(value)
        if combined.interval is None:
            assert len(first) < 2
            assert len(second) < 2
        else:
            assert combined.interval.low <= combined.value <= combined.interval.high
            assert 0.0 <= combined.interval.confidence < 1.0


@given(_SAMPLES, st.sampled_from([-2.0, 0.5, 3.0]))
def test_scaling_keeps_the_order_of_the_ends(samples, factor):
    scaled = median_figure(samples).scaled(factor)
    assert scaled.value == statistics.median(samples) * factor
    assert scaled.interval is None or scaled.interval.low <= scaled.value <= scaled.interval.high
