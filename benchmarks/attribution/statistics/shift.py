"""How far one group of points lies from another: the median of all pairwise ratios, with an interval from their ranks.

Hodges-Lehmann shift of the logarithms; its interval inverts the Mann-Whitney test (Hollander, Wolfe, Chicken,
"Nonparametric Statistical Methods", section 4.3, normal approximation), so neither asks for Gaussian noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEAREST = 50
"""Points nearest to the change, on each side, that are compared."""
_TWO_SIDED_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Shift:
    """``ratio`` is after / before; None for all three where a value is zero or negative."""

    ratio: float | None
    low: float | None
    high: float | None

    @property
    def moved(self) -> bool:
        """Whether the 95 % interval leaves out 1."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high


def shift_between(before: NDArray[np.float64], after: NDArray[np.float64], widened: float = 1.0) -> Shift:
    """The ratio after / before: shapes (m,), (n,). ``widened`` multiplies the standard error (correlated points)."""
    left, right = before[-NEAREST:], after[:NEAREST]
    if not len(left) or not len(right) or min(left.min(), right.min()) <= 0:
        return Shift(None, None, None)
    pairs = np.sort((np.log(right)[:, None] - np.log(left)[None, :]).ravel())
    m, n = len(left), len(right)
    error = widened * _TWO_SIDED_95 * np.sqrt(m * n * (m + n + 1) / 12)
    rank = max(0, int(np.floor(m * n / 2 - error)))
    low, middle, high = np.exp([pairs[rank], np.median(pairs), pairs[m * n - 1 - rank]])
    return Shift(float(middle), float(low), float(high))
