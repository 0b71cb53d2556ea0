"""Interval arithmetic against a brute-force sweep over single nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution import intervals

_ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=14)


def _columns(rows):
    start = np.array([start for start, _ in rows], dtype=np.int64)
    return start, start + np.array([length for _, length in rows], dtype=np.int64)


def _instants(pair):
    return {t for start, end in zip(*pair, strict=True) for t in range(int(start), int(end))}


def _is_disjoint(pair):
    start, end = pair
    return bool(np.all(end > start)) and bool(np.all(start[1:] > end[:-1]))


@given(_ROWS)
def test_union_covers_the_same_instants(rows):
    pair = _columns(rows)
    result = intervals.union(*pair)
    assert _instants(result) == _instants(pair)
    assert _is_disjoint(result)
    assert intervals.total(result) == len(_instants(pair))


@given(_ROWS, _ROWS)
def test_subtract_leaves_what_the_holes_do_not_cover(rows, holes):
    result = intervals.subtract(_columns(rows), _columns(holes))
    assert _instants(result) == _instants(_columns(rows)) - _instants(_columns(holes))
    assert _is_disjoint(result)


@given(_ROWS, st.integers(0, 50), st.integers(1, 40))
def test_gaps_and_union_fill_the_window(rows, left, length):
    window = (left, left + length)
    result = intervals.gaps(_columns(rows), window)
    assert _instants(result) == set(range(*window)) - _instants(_columns(rows))


@given(_ROWS, st.integers(0, 50), st.integers(1, 40))
def test_clip_keeps_each_row_inside(rows, left, length):
    window = (left, left + length)
    clipped = intervals.clip(*_columns(rows), window)
    for before, after in zip(zip(*_columns(rows), strict=True), zip(*clipped, strict=True), strict=True):
        assert set(range(*map(int, after))) == set(range(*map(int, before))) & set(range(*window))


@given(_ROWS)
def test_each_instant_is_attributed_to_the_earliest_started_row(rows):
    start, end = _columns(rows)
    expected = [0] * len(rows)
    for instant in range(90):
        running = [row for row in range(len(rows)) if start[row] <= instant < end[row]]
        if running:
            expected[min(running, key=lambda row: (start[row], row))] += 1
    result = intervals.attribute(start, end)
    assert result.tolist() == expected
    assert int(result.sum()) == intervals.total(intervals.union(start, end))


def test_times_of_a_real_clock_stay_exact():
    start = np.array([1795978918873282344, 1795978918873282345], dtype=np.int64)
    end = start + 3
    assert intervals.attribute(start, end).tolist() == [3, 1]
