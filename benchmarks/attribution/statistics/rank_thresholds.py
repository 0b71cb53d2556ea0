"""How large a sum of rank scores must be before the last r of n points count as changed, whatever the noise looks like.

Where the n points are exchangeable, every choice of which r ranks the last r points hold is equally likely, so the
distribution of their score sum depends on n and r alone: it holds for Gaussian, heavy-tailed and two-level noise alike.
Its far tail comes from Skovgaard's double saddlepoint approximation for the Bernoulli sampling form of a simple random
sample (J. Robinson, "Saddlepoint approximations for permutation tests and confidence intervals", JRSS B 44, 1982).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, ndtr, ndtri

Floats = NDArray[np.float64]

WINDOW = 256
"""Points of the running segment, newest included, that are ranked together."""
SCORE_CLIP = 2.0
"""Normal scores are clipped here, so that one wild point cannot hide a step or make one."""
MIN_LEFT = 4
"""Fewest points before a split."""
RECENT = (5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128)
"""Numbers of last points that are held against the points before them, at every look."""
# n between these is interpolated: the standardised threshold moves slowly with n.
_GRID = (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27, 30, 34, 38, 43, 48, 56, 64, 80, 96, 128, 160, 200, 256)
_TILTS = np.exp(np.linspace(np.log(0.05), np.log(60.0), 100))


@lru_cache(maxsize=WINDOW + 1)
def scores(n: int) -> Floats:
    """Clipped normal scores of the ranks 0 .. n-1: shape (n,), symmetric about zero."""
    values: Floats = np.clip(ndtri((np.arange(n) + 0.5) / n), -SCORE_CLIP, SCORE_CLIP)
    return values


def point_scores(points: Floats) -> Floats:
    """Clipped normal scores of the points themselves, equal points sharing the middle of their ranks: shape as given."""
    _, place, alike = np.unique(points, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(alike) - (alike - 1) / 2)[place]  # scipy.stats has the same, and takes half a second to import
    values: Floats = np.clip(ndtri((ranks - 0.5) / len(points)), -SCORE_CLIP, SCORE_CLIP)
    return values


def score_spread(n: int, recent: int) -> float:
    """Standard deviation of the score sum of ``recent`` of n exchangeable points."""
    return float(np.sqrt(recent * (n - recent) / (n * (n - 1.0)) * np.square(scores(n)).sum()))


def tail(n: int, recent: int) -> tuple[Floats, Floats]:
    """Score sums in rising order, and the chance that exchangeable noise reaches each: two arrays of one shape."""
    values, share = scores(n), recent / n
    odds = np.log(share / (1 - share))
    # A strong tilt takes the highest scores and no other: its middle lies between the last left out and the first taken.
    offset = -odds - _TILTS * (values[n - recent - 1] + values[n - recent]) / 2
    for _ in range(80):
        inside = expit(odds + offset[:, None] + _TILTS[:, None] * values)
        step = (inside.sum(1) - recent) / np.maximum((inside * (1 - inside)).sum(1), 1e-12)
        offset -= np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-10:
            break
    sums, variance = inside @ values, inside * (1 - inside)
    aa, at, tt = variance.sum(1), variance @ values, variance @ values**2
    growth = np.logaddexp(np.log1p(-share), np.log(share) + offset[:, None] + _TILTS[:, None] * values).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(2 * (offset * recent + _TILTS * sums - growth))
        slope = _TILTS * np.sqrt((aa * tt - at**2) / (n * share * (1 - share)))
        chance = ndtr(-root) - np.exp(-(root**2) / 2) / np.sqrt(2 * np.pi) * (1 / root - 1 / slope)
    usable = np.isfinite(chance) & (chance > 0) & (chance < 0.3)
    return sums[usable], np.minimum.accumulate(chance[usable])


def smallest_chance(n: int, recent: int) -> float:
    """Chance of the most extreme order of all, on one side: 1 / C(n, recent)."""
    return float(np.exp(gammaln(recent + 1) + gammaln(n - recent + 1) - gammaln(n + 1)))


def threshold(n: int, recent: int, chance: float) -> float:
    """Score sum that exchangeable noise reaches with at most ``chance`` on one side; inf where no order is that rare."""
    if n - recent < MIN_LEFT or smallest_chance(n, recent) > chance:
        return np.inf
    sums, chances = tail(n, recent)
    most = float(scores(n)[-recent:].sum())
    return min(most, float(np.interp(-np.log(chance), -np.log(chances), sums)))


def threshold_table(chances: dict[int, float], at_most: float = 0.0, longest: int = WINDOW) -> Floats:
    """Thresholds by n (0 .. WINDOW) and position in RECENT: shape (WINDOW + 1, len(RECENT)); inf means never.

    ``chances`` by number of recent points. Where n is too short for any order to be that rare, the most extreme order
    is taken if its own chance is below ``at_most``. No threshold above ``longest`` points.
    """
    table = np.full((WINDOW + 1, len(RECENT)), np.inf)
    for column, recent in enumerate(RECENT):
        chance = chances.get(recent, 0.0)
        grid = [n for n in _GRID if n - recent >= MIN_LEFT and smallest_chance(n, recent) <= chance]
        if not grid:
            continue
        levels = [threshold(n, recent, chance) / score_spread(n, recent) for n in grid]
        for n in range(recent + MIN_LEFT, longest + 1):
            most = float(scores(n)[-recent:].sum())
            if smallest_chance(n, recent) <= chance:
                table[n, column] = min(most, float(np.interp(n, grid, levels)) * score_spread(n, recent))
            elif smallest_chance(n, recent) <= at_most:
                table[n, column] = most
    return table
