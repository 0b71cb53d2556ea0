"""The signed-rank test against scipy's, its interval against its test, and its error rate where t intervals fail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.attribution.statistics import signed_rank
from benchmarks.attribution.statistics.signed_rank import SignedRank

values = st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), min_size=6, max_size=24, unique=True)


@pytest.mark.parametrize("n", [6, 8, 15, 33])
def test_p_value_is_scipys_exact_one(n):
    sample = np.random.default_rng(n).normal(0.3, 1, n)
    expected = stats.wilcoxon(sample - 0.1, alternative="greater", method="exact").pvalue
    assert SignedRank(sample).p_above(0.1) == pytest.approx(expected, rel=1e-9)


@given(values, st.floats(-0.9, 0.9), st.sampled_from([0.25, 0.05, 0.02, 0.001]))
def test_the_limit_is_the_inverse_of_the_test(sample, shift, level):
    test, mirrored = SignedRank(np.asarray(sample)), SignedRank(-np.asarray(sample))
    assert (test.p_above(shift) <= level) == (shift < test.lower_limit(level))
    assert (test.p_below(shift) <= level) == (shift > test.upper_limit(level))
    assert test.upper_limit(level) == -mirrored.lower_limit(level)
    assert test.p_below(shift) == mirrored.p_above(-shift)


def test_too_few_pairs_give_no_limit():
    assert SignedRank(np.array([1.0, 2.0, 3.0])).lower_limit(0.01) == -np.inf
    assert signed_rank.smallest_p(7) == signed_rank.null_survival(7)[28]


def test_ties_with_the_shift_never_help_to_reject():
    assert SignedRank(np.full(10, 0.02)).p_above(0.02) == 1.0


def test_two_wild_pairs_do_not_move_the_estimate():
    quiet = np.random.default_rng(3).normal(0.05, 0.002, 20)
    wild = np.append(quiet, [5.0, -7.0])
    assert SignedRank(wild).estimate == pytest.approx(SignedRank(quiet).estimate, abs=0.001)
