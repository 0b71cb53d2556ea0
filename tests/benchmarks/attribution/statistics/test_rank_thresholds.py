"""The thresholds are what chance allows: held against exact counts of every order, not against themselves."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from benchmarks.attribution.statistics import rank_thresholds as t


def test_scores_are_clipped_symmetric_and_rising():
    values = t.scores(100)
    assert values[0] == -2.0 and values[-1] == 2.0
    assert np.allclose(values, -values[::-1])
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize(("n", "recent"), [(20, 5), (24, 5), (22, 6)])
def test_tail_chance_agrees_with_every_order_counted(n, recent):
    values = t.scores(n)
    sums = np.sort([values[list(chosen)].sum() for chosen in combinations(range(n), recent)])
    for chance in (1e-2, 1e-3):
        bound = t.threshold(n, recent, chance)
        exact = (sums >= bound - 1e-9).mean()
        assert 0.6 * chance < exact < 1.6 * chance


def test_spread_is_that_of_every_order():
    values = t.scores(12)
    sums = [values[list(chosen)].sum() for chosen in combinations(range(12), 5)]
    assert t.score_spread(12, 5) == pytest.approx(np.std(sums))


def test_too_few_points_never_alarm_by_rank():
    # 1 / C(15, 5) = 1 / 3003: no order of 15 points is rarer.
    assert t.smallest_chance(15, 5) == pytest.approx(1 / 3003)
    assert t.threshold(15, 5, 1e-4) == np.inf
    assert np.isfinite(t.threshold(15, 5, 1e-3))


def test_table_takes_the_rarest_order_where_it_is_rare_enough():
    table = t.threshold_table({5: 1e-5}, at_most=1e-3, longest=40)
    five = t.RECENT.index(5)
    assert table[15, five] == pytest.approx(t.scores(15)[-5:].sum())  # 1/3003 is below 1e-3
    assert table[12, five] == np.inf  # 1/792 is not
    assert table[41, five] == np.inf and np.isfinite(table[40, five])
    assert np.isinf(table[:, t.RECENT.index(6)]).all()


def test_equal_points_share_the_middle_of_their_ranks():
    assert np.allclose(t.point_scores(np.ones(7)), 0.0)
    assert t.point_scores(np.array([1.0, 2.0, 2.0, 3.0])).tolist() == pytest.approx(
        [t.scores(4)[0], 0.0, 0.0, t.scores(4)[3]]
    )


@pytest.mark.parametrize("points", [[3.0, 1.0, 2.0], [2.0, 2.0, 1.0, 2.0, 5.0, 5.0], [1.0] * 4, list(range(40))])
def test_ranks_are_those_of_scipy(points):
    shares = (rankdata(points) - 0.5) / len(points)
    assert np.allclose(t.point_scores(np.array(points)), np.clip(norm.ppf(shares), -2.0, 2.0), atol=1e-12)
