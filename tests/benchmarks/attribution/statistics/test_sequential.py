"""Looks and their prices: the sum never exceeds the error rate; Holm against its definition."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.statistics import sequential


def test_all_looks_together_cost_the_error_rate():
    spent = sum(sequential.share(look) for look in range(1, 10_000))
    assert 0.999 < spent < 1


def test_looks_are_even_and_grow_by_a_quarter():
    looks = sequential.looks_up_to(200)
    assert looks[:4] == [6, 8, 10, 12]
    assert all(look % 2 == 0 for look in looks)
    assert all(after >= before * 1.2 for before, after in pairwise(looks[2:]))


def test_pairs_between_two_looks_wait_for_the_next():
    assert sequential.looks_up_to(11) == [6, 8, 10]
    assert sequential.looks_up_to(5) == []


@given(st.integers(0, 500))
def test_the_next_look_is_ahead(pairs):
    ahead = sequential.next_look(pairs)
    assert ahead > pairs
    assert sequential.looks_up_to(ahead)[-1] == ahead


def test_holm_by_hand():
    assert sequential.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert sequential.holm_levels([0.01, 0.04, 0.03, 0.005], 0.12) == pytest.approx([0.04, 0.12, 0.06, 0.03])
