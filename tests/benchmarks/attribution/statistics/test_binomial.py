"""Clopper-Pearson against figures known from tables."""

import pytest

from benchmarks.attribution.statistics.binomial import rate


def test_no_event_in_300_is_at_most_1_2_percent():
    found = rate(0, 300)
    assert found.low == 0
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 300))


def test_95_of_100():
    found = rate(95, 100)
    assert (round(found.low, 4), round(found.high, 4)) == (0.8872, 0.9836)
    assert str(found) == "95/100 = 95.00% (95% interval 88.72%..98.36%)"


@pytest.mark.parametrize("count, trials", [(1, 0), (-1, 4), (5, 4), (0, 0)])
def test_an_impossible_count_is_refused(count, trials):
    with pytest.raises(ValueError, match="a rate needs"):
        rate(count, trials)
