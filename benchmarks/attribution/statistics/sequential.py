"""When the CI gate may look at its pairs, and what each look costs in error rate.

Pairs are added until the verdict falls, so the data is tested many times. Each look k gets the share 1/(k(k+1)) of the
error rate; the shares of infinitely many looks sum to 1, so by Bonferroni's inequality the total error stays below the
stated rate whenever one stops: on a verdict, on an empty time budget, or after a resumed run. The number of looks need
not be known beforehand. (Alpha spending as in Lan and DeMets, Biometrika 70 (1983), without their normal approximation.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, repeat

FIRST_LOOK = 6
LOOK_GROWTH = 1.25
"""Each look has at least a quarter more pairs than the one before it."""


def next_look(pairs: int) -> int:
    """The number of pairs at the first look after ``pairs`` pairs. Even, so that both orders of the arms weigh the same."""
    look = FIRST_LOOK
    while look <= pairs:
        look = _after(look)
    return look


def looks_up_to(pairs: int) -> list[int]:
    """Every look that ``pairs`` pairs allow. Pairs beyond the last look wait for the next one: a look where a budget
    happened to end, followed by a resumed run, would be one that nobody paid for.
    """
    looks: list[int] = []
    look = FIRST_LOOK
    while look <= pairs:
        looks.append(look)
        look = _after(look)
    return looks


def share(look: int) -> float:
    """The part of the error rate that look number ``look`` = 1, 2, ... may spend; all of them sum to 1."""
    return 1.0 / (look * (look + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given (Scandinavian Journal of Statistics 6 (1979))."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    raw = (min(1.0, p_values[index] * (len(order) - rank)) for rank, index in enumerate(order))
    adjusted = [0.0] * len(order)
    for index, value in zip(order, accumulate(raw, max), strict=True):
        adjusted[index] = value
    return adjusted


def holm_levels(p_values: Sequence[float], level: float) -> list[float]:
    """The level at which Holm tests each hypothesis, in the order given: ``level`` / (number not yet rejected)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    levels = list(repeat(0.0, len(order)))
    for rank, index in enumerate(order):
        levels[index] = level / (len(order) - rank)
    return levels


def _after(look: int) -> int:
    grown = max(look + 2, round(look * LOOK_GROWTH))
    return grown + grown % 2
