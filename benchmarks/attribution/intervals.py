"""Arithmetic on sets of half-open intervals ``[start, end)``, as pairs of int64 columns in ns.

Everything is exact and sort-based: O(n log n), no Python loop over rows, so that ten million launches stay columns.
"Disjoint" below means sorted by start, not touching, none empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Intervals = tuple[Int64, Int64]


def order_by_start(start: Int64) -> NDArray[np.intp]:
    """Row numbers by start, ties in row order; the sort is skipped where the rows are already in order."""
    if start.size == 0 or bool(np.all(start[1:] >= start[:-1])):
        return np.arange(start.size, dtype=np.intp)
    return np.argsort(start, kind="stable")


def union(start: Int64, end: Int64) -> Intervals:
    """The disjoint intervals that cover the same instants; empty and touching ones disappear."""
    kept = end > start
    if not bool(np.all(kept)):
        start, end = start[kept], end[kept]
    if start.size == 0:
        return start.astype(np.int64), end.astype(np.int64)
    order = order_by_start(start)
    first, reach = start[order], np.maximum.accumulate(end[order])
    opens = np.concatenate(([True], first[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return first[opens], reach[closes]


def total(intervals: Intervals) -> int:
    """Length of disjoint intervals in ns."""
    return int(np.sum(intervals[1] - intervals[0], dtype=np.int64))


def clip(start: Int64, end: Int64, window: tuple[int, int]) -> Intervals:
    """Each interval's part inside the window, row for row; one that lies outside becomes empty at the window's edge."""
    return np.clip(start, *window), np.clip(end, *window)


def subtract(whole: Intervals, holes: Intervals) -> Intervals:
    """The instants of ``whole`` that ``holes`` leave, as disjoint intervals. Both may overlap and be unsorted."""
    kept, removed = union(*whole), union(*holes)
    if kept[0].size == 0 or removed[0].size == 0:
        return kept
    points = np.sort(np.concatenate((*kept, *removed)))  # equal points make empty pieces, which union drops
    inside = _covers(kept, points[:-1]) & ~_covers(removed, points[:-1])
    return union(points[:-1][inside], points[1:][inside])


def gaps(intervals: Intervals, window: tuple[int, int]) -> Intervals:
    """The instants of the window that no interval covers, as disjoint intervals."""
    covered = union(*clip(*intervals, window))
    start, end = np.append(np.int64(window[0]), covered[1]), np.append(covered[0], np.int64(window[1]))
    open_between = end > start
    return start[open_between], end[open_between]


def attribute(start: Int64, end: Int64) -> Int64:
    """Time of each row such that the rows sum to the length of their union exactly.

    An instant that several rows cover belongs to the one that started first; of rows that started together, to the one
    that comes first. Sorted so, a row gets what lies after everything before it has ended: ``end - max(start, reach)``.
    """
    if start.size == 0:
        return np.zeros(0, dtype=np.int64)
    order = order_by_start(start)
    first, last = start[order], end[order]
    reach = np.maximum.accumulate(last)
    before = np.concatenate((first[:1], reach[:-1]))
    attributed = np.empty(start.size, dtype=np.int64)
    attributed[order] = np.maximum(last - np.maximum(first, before), 0)
    return attributed


def _covers(disjoint: Intervals, points: Int64) -> NDArray[np.bool_]:
    opened = np.searchsorted(disjoint[0], points, side="right")
    closed = np.searchsorted(disjoint[1], points, side="right")
    return opened > closed
