"""Runs through many series at once and raises an alarm at the point where enough of the last points left the ones before.

The pass is the same as running the detector after each appended point: an alarm that was raised once stays. Two rules,
both on ranks, so that the form of the noise does not matter (docs/method.md, "Change points"):
the rank rule alone, at a chance so small that a life of looks stays quiet, and a weaker rank rule
joined with a t statistic, which lets short series speak where no order of so few points is rare enough by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from .rank_thresholds import MIN_LEFT, RECENT, WINDOW, point_scores, scores, threshold_table

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

RANK_CHANCE = 2.4e-5
"""Chance on one side, at one look, that the rank rule fires over the last five points; see ``rank_chance``."""
JOINT_RANK_CHANCE = 1e-4
"""Chance on one side of the order that the joint rule asks for, at one look and one number of recent points ..."""
JOINT_ORDER_CHANCE = 1e-3
"""... or, where no order of so few points is that rare, the rarest one, if its chance is below this."""
JOINT_LONGEST = 80
"""The joint rule serves segments up to this many points; longer ones have the rank rule."""
JOINT_T_CHANCE = 2e-6
"""Chance on one side of the t statistic that the joint rule asks for as well."""
JOINT_RECENT = (5, 6, 8, 10)
"""Numbers of last points that the joint rule looks at."""
FEWEST_POINTS = min(JOINT_RECENT) + MIN_LEFT
"""A shorter segment holds no change that could be told from chance."""
CORRELATION_BOUND = 0.2
"""Points whose lag-one autocorrelation is above this are not taken as independent."""
KNOWN_CORRELATION = 50
"""Fewer points than this do not tell their own correlation well enough, so more than the estimate is assumed ..."""
SHORT_ERRORS = 0.8
"""... by this many standard errors (1 / sqrt(points))."""
_CHUNK = 400
_TIE_SEED = 20_260_905


@dataclass(frozen=True, slots=True)
class Alarm:
    """A change found: the series' row, the first point after it, and the newest point at the look that found it."""

    row: int
    index: int
    seen_at: int


def rank_chance(recent: int) -> float:
    """What the rank rule spends on ``recent`` last points: most on five, the rest on longer runs, which show small steps."""
    if recent < 5:
        return 0.0
    if recent == 5:
        return RANK_CHANCE
    return RANK_CHANCE / 5 if recent == 6 else RANK_CHANCE * 0.8 / recent


@lru_cache(maxsize=8)
def _tables(scale: float) -> tuple[Floats, Floats, NDArray[np.float32], Floats]:
    alone = threshold_table({recent: scale * rank_chance(recent) for recent in RECENT})
    joint = threshold_table(dict.fromkeys(JOINT_RECENT, scale * JOINT_RANK_CHANCE), JOINT_ORDER_CHANCE, JOINT_LONGEST)
    flat = np.zeros((WINDOW + 1, WINDOW + 1), np.float32)
    for n in range(1, WINDOW + 1):
        flat[n, :n] = scores(n)
    t_bound = np.full(WINDOW + 1, np.inf)
    t_bound[3:] = -stdtrit(np.arange(3, WINDOW + 1) - 2, scale * JOINT_T_CHANCE)
    return alone, joint, flat.ravel(), t_bound


def order(values: Floats) -> NDArray[np.int32]:
    """Rank of each value within its row, ties broken by a fixed random key: shape as given, +inf for NaN (padding).

    A random order of equal values keeps exchangeable points exchangeable; the key of a position never changes, so that
    appending points leaves the order of the earlier ones alone.
    """
    keys = np.random.default_rng(_TIE_SEED).random(values.shape[1])
    # Two stable sorts: by key, then by value.
    by_key = np.argsort(keys, kind="stable")
    by_value = by_key[np.argsort(values[:, by_key], axis=1, kind="stable")]
    ranks = np.empty(values.shape, np.int32)
    np.put_along_axis(ranks, by_value, np.arange(values.shape[1], dtype=np.int32)[None, :], axis=1)
    ranks[np.isnan(values)] = np.iinfo(np.int32).max
    return ranks


def find_alarms(values: Floats, first_look: int = 0, scale: float = 1.0) -> tuple[list[Alarm], NDArray[np.bool_]]:
    """Every alarm over the life of each row of ``values``: shape (series, points), rows padded on the LEFT with NaN.

    Points before ``first_look`` are a history that is read in one look; ``scale`` multiplies every chance.
    Alarms come by row, then by look. The second part says of each row whether its points were too alike their
    neighbours for some alarm to count: shape (series,).
    """
    found: list[Alarm] = []
    doubted = np.zeros(values.shape[0], bool)
    for low in range(0, values.shape[0], _CHUNK):
        chunk = _Pass(values[low : low + _CHUNK], low, scale)
        found.extend(chunk.run(first_look))
        doubted[low : low + _CHUNK] = chunk.doubted
    return sorted(found, key=lambda alarm: (alarm.row, alarm.seen_at)), doubted


class _Pass:
    """The state of one chunk: points run along the first axis, series along the second."""

    def __init__(self, values: Floats, first_row: int, scale: float) -> None:
        self.values = np.ascontiguousarray(values.T)
        self.order = np.ascontiguousarray(order(values).T)
        self.ranks = np.zeros(self.order.shape, np.int32)
        self.start: Integers = np.isnan(values).sum(axis=1)
        self.doubted = np.zeros(values.shape[0], bool)
        self.first_row = first_row
        self.alone, self.joint, self.flat, self.t_bound = _tables(scale)

    def run(self, first_look: int) -> list[Alarm]:
        found: list[Alarm] = []
        for newest in range(self.order.shape[0]):
            self._append(newest)
            if newest < first_look:
                continue
            for column in self._hits(newest):
                split = self._split(newest, column)
                found.append(Alarm(self.first_row + int(column), split, newest))
                self._restart(column, split, newest)
        return found

    def _append(self, newest: int) -> None:
        low = max(0, newest - WINDOW + 1)
        window, ranks, point = self.order[low:newest], self.ranks[low:newest], self.order[newest]
        if low > 0:
            ranks -= self.order[low - 1] < window
        ranks += point < window
        self.ranks[newest] = (window < point).sum(axis=0)

    def _hits(self, newest: int) -> list[int]:
        length = np.clip(newest + 1 - self.start, 0, WINDOW)
        longest = int(length.max()) - MIN_LEFT
        recents = [recent for recent in RECENT if recent <= longest]
        if not recents:
            return []
        tail = self.ranks[newest - recents[-1] + 1 : newest + 1][::-1]
        index = np.minimum(tail, WINDOW) + (length * (WINDOW + 1)).astype(np.int32)
        size = np.abs(np.cumsum(self.flat[index], axis=0)[np.array(recents) - 1]) + 1e-5
        alone = size >= self.alone[length, : len(recents)].T
        joint = size >= self.joint[length, : len(recents)].T
        hits: list[int] = []
        for column in np.flatnonzero((alone | joint).any(axis=0)):
            points = self.values[newest + 1 - length[column] : newest + 1, column]
            rows = np.flatnonzero(alone[:, column] | joint[:, column])
            if any(self._holds(points, recents[row], bool(alone[row, column]), int(column)) for row in rows):
                hits.append(int(column))
        return hits

    def _holds(self, points: Floats, recent: int, by_rank: bool, column: int) -> bool:
        """Whether a candidate counts: the t statistic where the rank rule was not enough, and neighbours not too alike."""
        left, right = points[:-recent], points[-recent:]
        alike, bound = neighbour_correlation(left), correlation_bound(len(left))
        if by_rank and alike <= bound and len(left) >= KNOWN_CORRELATION:
            return True
        squares = float(np.square(left - left.mean()).sum() + np.square(right - right.mean()).sum())
        noise = np.sqrt(squares / (len(points) - 2) * (1 / recent + 1 / len(left)))
        if len(left) < KNOWN_CORRELATION:
            alike = max(0.0, alike + SHORT_ERRORS / np.sqrt(len(left)))
        if alike > bound:
            alike = min(alike, 0.95)
            noise *= np.sqrt((1 + alike) / (1 - alike))
        holds = bool(abs(right.mean() - left.mean()) > self.t_bound[len(points)] * noise)
        self.doubted[column] |= by_rank and not holds
        return holds

    def _split(self, newest: int, column: int) -> int:
        """The first point after the change: the split whose score sum is largest in its own standard deviations."""
        low = max(int(self.start[column]), newest - WINDOW + 1)
        n = newest + 1 - low
        return low + best_split(scores(n)[self.ranks[low : newest + 1, column]])

    def _restart(self, column: int, split: int, newest: int) -> None:
        self.start[column] = split
        self.order[:split, column] = np.iinfo(np.int32).max
        low = max(split, newest - WINDOW + 1)
        self.ranks[low : newest + 1, column] = np.argsort(np.argsort(self.order[low : newest + 1, column]))


def neighbour_correlation(points: Floats) -> float:
    """Lag-one autocorrelation of the points' clipped normal scores: within -1 .. 1; 0 for fewer than three points."""
    n = len(points)
    if n < 3:
        return 0.0
    values = point_scores(points)
    size = float(values @ values)
    return float(values[1:] @ values[:-1]) / size if size > 0 else 0.0


def correlation_bound(n: int) -> float:
    """The correlation of n points up to which they are taken as independent."""
    return CORRELATION_BOUND * min(1.0, n / KNOWN_CORRELATION)


def best_split(segment_scores: Floats) -> int:
    """Where to cut: shape (n,) -> the index of the first point after the cut, with MIN_LEFT before it and 3 from it on."""
    n = len(segment_scores)
    right = np.cumsum((segment_scores - segment_scores.mean())[::-1])[::-1]
    cut = np.arange(MIN_LEFT, n - 2)
    return int(cut[np.argmax(np.abs(right[cut]) / np.sqrt(cut * (n - cut)))])
