"""How far a figure can be trusted: intervals of medians from the samples' own order, with no assumption of their shape."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .record import ClassTime, Wall

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """Low and high end in the figure's own unit, and the confidence that so few samples really reach."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A median with its interval; no interval where there are fewer than two samples."""

    value: float
    interval: Interval | None = None

    def scaled(self, factor: float) -> Figure:
        """The same figure in another unit; a negative factor turns the interval round."""
        if self.interval is None:
            return Figure(self.value * factor)
        ends = sorted((self.interval.low * factor, self.interval.high * factor))
        return Figure(self.value * factor, Interval(ends[0], ends[1], self.interval.confidence))


def median_figure(samples: Sequence[float], fallback: float | None = None) -> Figure:
    """The median and its order-statistic interval; ``fallback`` is the value where there are no samples.

    The interval runs from the k-th smallest to the k-th largest sample, with the largest k that still reaches CONFIDENCE
    (k = 1 where none does: its true confidence, 1 - 2^(1-n), is then stated). It covers the median with probability
    1 - 2 P(Binomial(n, 1/2) < k). Source: David and Nagaraja, Order Statistics, section 7.1.
    """
    if not samples:
        if fallback is None:
            raise ValueError("no samples and no fallback")
        return Figure(float(fallback))
    ordered, count = sorted(samples), len(samples)
    middle = float(statistics.median(ordered))
    if count < 2:
        return Figure(middle)
    rank = 1
    while 2 * (rank + 1) <= count and _coverage(count, rank + 1) >= CONFIDENCE:
        rank += 1
    return Figure(middle, Interval(float(ordered[rank - 1]), float(ordered[count - rank]), _coverage(count, rank)))


def ratio(above: Figure, below: Figure) -> Figure:
    """Quotient of two positive figures. Confidence by Bonferroni: one minus the sum of both chances to miss."""
    both = _both(above, below)
    if both is None:
        return Figure(above.value / below.value)
    first, second, confidence = both
    return Figure(above.value / below.value, Interval(first.low / second.high, first.high / second.low, confidence))


def difference(first: Figure, second: Figure) -> Figure:
    """``first - second``, with the confidence as for a ratio."""
    both = _both(first, second)
    if both is None:
        return Figure(first.value - second.value)
    left, right, confidence = both
    return Figure(first.value - second.value, Interval(left.low - right.high, left.high - right.low, confidence))


def class_figure(item: ClassTime) -> Figure:
    """A class's time in ns over the traced repetitions; where only one was kept, that one."""
    return median_figure(item.samples_ns, item.ns)


def wall_figure(wall: Wall) -> Figure:
    """The untraced wall in ns: the one that is quoted. Falls back to the decomposed wall where no sample was kept."""
    return median_figure(wall.samples_ns, wall.decomposition.wall_ns if wall.decomposition else None)


def _both(first: Figure, second: Figure) -> tuple[Interval, Interval, float] | None:
    """Both intervals, a figure without one standing as a point; None where neither has one."""
    if first.interval is None and second.interval is None:
        return None
    left = first.interval or Interval(first.value, first.value, 1.0)
    right = second.interval or Interval(second.value, second.value, 1.0)
    return left, right, max(left.confidence + right.confidence - 1.0, 0.0)


def _coverage(count: int, rank: int) -> float:
    return 1.0 - 2.0 * sum(math.comb(count, successes) for successes in range(rank)) / 2.0**count
