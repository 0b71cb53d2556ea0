"""Wilcoxon's signed-rank statistic and the Hodges-Lehmann estimate, exact at every sample size.

Under "no difference" the two arms of a pair could be swapped, so a pair's log-ratio is symmetric about 0 whatever the
noise: heavy tails, two levels, an order effect that alternates. That symmetry is all that the null distribution needs, so
its error rate holds where a t interval would lean on normality. (Hollander, Wolfe, Chicken: Nonparametric Statistical
Methods, 3rd edition, sections 3.1-3.3; the Walsh-average form makes the interval the exact inverse of the test.)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@lru_cache(maxsize=512)
def null_survival(n: int) -> Floats:
    """P(W+ >= w) for w = 0 .. n(n+1)/2 + 1 under symmetry about 0; shape [n(n+1)/2 + 2], the last entry is 0."""
    density = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(density) + rank)
        longer[: len(density)] += density
        longer[rank:] += density
        density = longer / 2
    return np.append(np.cumsum(density[::-1])[::-1], 0.0)


class SignedRank:
    """The test of one sample of n values; its Walsh averages (x_i + x_j) / 2, i <= j, are sorted once."""

    def __init__(self, values: Floats) -> None:
        first, second = np.triu_indices(len(values))
        self.n = len(values)
        self._averages: Floats = np.sort((values[first] + values[second]) / 2)

    @property
    def estimate(self) -> float:
        """Hodges-Lehmann: the median of the Walsh averages, the centre of a symmetric distribution."""
        return float(np.median(self._averages))

    def p_above(self, shift: float) -> float:
        """One-sided p-value against "the centre is at most ``shift``". A tie with ``shift`` counts as not above it."""
        above = len(self._averages) - int(np.searchsorted(self._averages, shift, side="right"))
        return float(null_survival(self.n)[above])

    def p_below(self, shift: float) -> float:
        """One-sided p-value against "the centre is at least ``shift``"."""
        return float(null_survival(self.n)[int(np.searchsorted(self._averages, shift, side="left"))])

    def lower_limit(self, level: float) -> float:
        """The centre is at least this, with error at most ``level``; minus infinity where n is too small to say.

        ``p_above(shift) <= level`` exactly where ``shift < lower_limit(level)``.
        """
        count = self._needed(level)
        return float("-inf") if count is None else float(self._averages[len(self._averages) - count])

    def upper_limit(self, level: float) -> float:
        """The centre is at most this, with error at most ``level``; infinity where n is too small to say."""
        count = self._needed(level)
        return float("inf") if count is None else float(self._averages[count - 1])

    def _needed(self, level: float) -> int | None:
        """The smallest count of averages on one side of a shift that is significant."""
        # Survival falls, so its negative rises.
        count = int(np.searchsorted(-null_survival(self.n), -level, side="left"))
        return None if count > len(self._averages) else count


def smallest_p(n: int) -> float:
    """No n pairs give a smaller one-sided p-value than this: every sign the same."""
    return float(0.5**n)
