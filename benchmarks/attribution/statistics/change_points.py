"""Change points of benchmark histories: where a series moved for good, by how much, and how surely.

The decision is ``alarms.find_alarms``; here it is led over measurement windows and correlated points, each change is
placed by all points around it, and its size is measured. The rules in prose: docs/method.md, "Change points".
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import UserFacingError
from .alarms import FEWEST_POINTS, best_split, find_alarms, neighbour_correlation
from .rank_thresholds import MIN_LEFT, WINDOW, point_scores
from .shift import NEAREST, Shift, shift_between

Floats = NDArray[np.float64]

BLOCK = 4
"""Consecutive points that are made one (their median) where points are correlated, or more than one pass can hold."""
DEEPEST = 3
"""Times that blocks are made of blocks: 4, 16, 64 points."""
PLACE_DROP = 7.0
"""A place is possible while twice its log-likelihood lies at most this far below the best one's."""
_NEAR = 128


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change between point ``index - 1`` and point ``index`` of the series as it was given."""

    index: int
    earliest: int
    """First and last index at which it could as well have been; ``index`` is the likeliest."""
    latest: int
    before: float
    """Median of the segment that ends there, at most 50 points, in the series' unit."""
    after: float
    shift: Shift
    seen_at: int
    """Index of the newest point at the look that found it."""


class SeriesError(UserFacingError):
    """A series that cannot be examined."""


def find_changes(values: Sequence[float] | Floats, windows: Sequence[str] | None = None) -> tuple[ChangePoint, ...]:
    """Change points of one series in time order. ``windows`` names each point's measurement window (see ``window_medians``).

    Raises SeriesError for anything but finite numbers.
    """
    if windows is None:
        return find_changes_in_many([np.asarray(values, float)])[0]
    points = _checked(values, "the series")
    if len(windows) != len(points):
        raise SeriesError(f"the series has {len(points)} points and {len(windows)} window names; give one name a point")
    medians, starts = window_medians(points, windows)
    ends = np.append(starts[1:], len(points))
    groups = [medians, *(points[low:high] for low, high in zip(starts, ends, strict=True))]
    across, *inside = find_changes_in_many(groups)
    found = [int(starts[change.index]) for change in across]
    seen = {int(starts[change.index]): int(ends[change.seen_at]) - 1 for change in across}
    for low, changes in zip(starts, inside, strict=True):
        for change in changes:
            found.append(int(low) + change.index)
            seen[found[-1]] = int(low) + change.seen_at
    return _describe(points, sorted(set(found)), seen, correlated=False, placed=True)


def window_medians(values: Floats, windows: Sequence[str]) -> tuple[Floats, NDArray[np.intp]]:
    """One point a window: its median, and the index of its first point. Neighbours with one name are one window.

    What was measured in one sitting shares clocks, temperature and neighbours, so points of different windows differ by
    more than points of one: windows are compared by their medians, and points only inside their own window.
    """
    names = np.asarray(windows)
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    ends = np.append(starts[1:], len(values))
    return np.array([np.median(values[low:high]) for low, high in zip(starts, ends, strict=True)]), starts


def aggregate(values: Floats, size: int = BLOCK) -> Floats:
    """Medians of consecutive blocks of ``size`` points; an unfinished last block is left out. Shape (points // size,)."""
    whole = len(values) // size * size
    medians: Floats = np.median(values[:whole].reshape(-1, size), axis=1)
    return medians


def find_changes_in_many(series: Sequence[Floats], workers: int = 1) -> list[tuple[ChangePoint, ...]]:
    """Change points of each series (lengths may differ), over ``workers`` processes. Raises SeriesError."""
    checked = [_checked(values, f"series {number}") for number, values in enumerate(series)]
    if workers <= 1 or len(checked) < 2 * workers:
        return _find(checked)
    # Long and short series alternate over the workers, each of which gets several portions.
    by_length = sorted(range(len(checked)), key=lambda number: len(checked[number]))
    portions = np.array_split(np.array(by_length), max(workers, len(checked) // 400))
    result: list[tuple[ChangePoint, ...]] = [()] * len(checked)
    with ProcessPoolExecutor(workers) as pool:
        for numbers, found in zip(portions, pool.map(_find, [[checked[n] for n in part] for part in portions]), strict=True):
            for number, changes in zip(numbers, found, strict=True):
                result[number] = changes
    return result


def _checked(values: Sequence[float] | Floats, name: str) -> Floats:
    points = np.asarray(values, float)
    if points.ndim != 1:
        raise SeriesError(f"{name}: expected one row of numbers, seen shape {points.shape}")
    bad = np.flatnonzero(~np.isfinite(points))
    if len(bad):
        raise SeriesError(f"{name}: point {bad[0]} is {points[bad[0]]}; leave out points that were not measured")
    return points


def _find(series: list[Floats]) -> list[tuple[ChangePoint, ...]]:
    places, doubted = _alarms(series, DEEPEST)
    return [
        _describe(points, sorted(found), found, correlated)
        for points, found, correlated in zip(series, places, doubted, strict=True)
    ]


def _alarms(series: list[Floats], depth: int) -> tuple[list[dict[int, int]], NDArray[np.bool_]]:
    """For each series {index of the first point after the change: look}, and whether its points are correlated."""
    places: list[dict[int, int]] = [{} for _ in series]
    doubted = np.zeros(len(series), bool)
    long_enough = [number for number, points in enumerate(series) if len(points) >= FEWEST_POINTS]
    by_length = sorted(long_enough, key=lambda number: len(series[number]))
    for low in range(0, len(by_length), 400):
        numbers = by_length[low : low + 400]
        longest = len(series[numbers[-1]])
        padded = np.full((len(numbers), longest), np.nan)
        for row, number in enumerate(numbers):
            padded[row, longest - len(series[number]) :] = series[number]
        alarms, doubts = find_alarms(padded)
        doubted[numbers] = doubts
        for alarm in alarms:
            offset = longest - len(series[numbers[alarm.row]])
            places[numbers[alarm.row]].setdefault(alarm.index - offset, alarm.seen_at - offset)
    if depth > 0:
        _examine_blocks(series, places, doubted, depth)
    return places, doubted


def _examine_blocks(series: list[Floats], places: list[dict[int, int]], doubted: NDArray[np.bool_], depth: int) -> None:
    """Add what blocks show inside segments whose points are correlated, or too many for one look."""
    segments: list[tuple[int, int, int]] = []
    for number, points in enumerate(series):
        edges = [0, *sorted(places[number]), len(points)]
        for low, high in pairwise(edges):
            if (doubted[number] or high - low > WINDOW) and high - low >= BLOCK * FEWEST_POINTS:
                segments.append((number, low, high))
    if not segments:
        return
    found, _ = _alarms([aggregate(series[number][low:high]) for number, low, high in segments], depth - 1)
    for (number, low, _), blocks in zip(segments, found, strict=True):
        for block, seen in blocks.items():
            places[number][low + block * BLOCK] = low + (seen + 1) * BLOCK - 1


def _describe(
    points: Floats, found: list[int], seen: dict[int, int], correlated: bool, placed: bool = False
) -> tuple[ChangePoint, ...]:
    """Place each change by the points around it, and measure it. ``placed``: the places stand as they are."""
    changes: list[ChangePoint] = []
    for position, index in enumerate(found):
        low = max(changes[-1].index if changes else 0, index - _NEAR)
        high = min(found[position + 1] if position + 1 < len(found) else len(points), index + _NEAR)
        best = earliest = latest = index
        if not placed and high - low >= MIN_LEFT + 4 and low < index < high:
            best, earliest, latest = (low + place for place in _place(points[low:high]))
        change = ChangePoint(best, earliest, latest, 0.0, 0.0, Shift(None, None, None), max(seen[index], best))
        if not changes or best > changes[-1].index:
            changes.append(change)
    edges = [0, *(change.index for change in changes), len(points)]
    return tuple(
        _measure(change, points[edges[i] : edges[i + 1]], points[edges[i + 1] : edges[i + 2]], correlated)
        for i, change in enumerate(changes)
    )


def _place(segment: Floats) -> tuple[int, int, int]:
    """Likeliest index of one step inside the segment, and the first and last that are almost as likely."""
    n = len(segment)
    values = point_scores(segment)
    best = best_split(values)
    cut = np.arange(1, n)
    right = np.cumsum((values - values.mean())[::-1])[::-1][cut]
    unexplained = np.square(values).sum() - right**2 * n / (cut * (n - cut))
    drop = n * np.log(np.maximum(unexplained, 1e-9) / max(unexplained[best - 1], 1e-9))
    likely = cut[drop <= PLACE_DROP]
    return best, min(best, int(likely[0])), max(best, int(likely[-1]))


def _measure(change: ChangePoint, left: Floats, right: Floats, correlated: bool) -> ChangePoint:
    widened = 1.0
    if correlated:
        alike = min(0.95, max(0.0, neighbour_correlation(left), neighbour_correlation(right)))
        widened = float(np.sqrt((1 + alike) / (1 - alike)))
    near_left, near_right = left[-NEAREST:], right[:NEAREST]
    return replace(
        change,
        before=float(np.median(near_left)),
        after=float(np.median(near_right)),
        shift=shift_between(near_left, near_right, widened),
    )
