"""Intervals for a rate: so many false alarms in so many verdicts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` of ``trials``, with a two-sided Clopper-Pearson interval: its coverage is never below ``confidence``."""

    count: int
    trials: int
    low: float
    high: float
    confidence: float

    @property
    def value(self) -> float:
        """The observed share, 0..1."""
        return self.count / self.trials

    def __str__(self) -> str:
        interval = f"{self.confidence:.0%} interval {self.low:.2%}..{self.high:.2%}"
        return f"{self.count}/{self.trials} = {self.value:.2%} ({interval})"


def rate(count: int, trials: int, confidence: float = 0.95) -> Rate:
    """Raises ValueError where ``count`` is not in 0..trials or trials is 0."""
    if not 0 <= count <= trials or trials == 0:
        raise ValueError(f"a rate needs 0 <= count <= trials and trials > 0, seen {count} of {trials}")
    from scipy.stats import binomtest

    interval = binomtest(count, trials).proportion_ci(confidence_level=confidence, method="exact")
    return Rate(count, trials, float(interval.low), float(interval.high), confidence)
