"""The CI gate's decision: paired log-ratios of two commits against a margin, with a stated error rate.

A pair is one process of base and one of head, run next to each other. The score of a pair is log(head / base); the
tests are ``signed_rank``'s, the looks ``sequential``'s. docs/method.md says the rule in prose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np

from ..errors import UserFacingError
from . import sequential, signed_rank
from .signed_rank import Floats, SignedRank

MARGIN = 0.02
"""A slowdown up to this share is let pass."""
FLOOR_SHARE = 0.05
"""The absolute floor where none is given: this part of the margin, taken of the group's wall (0.1 % of the wall). A class
of less than a twentieth of the wall is so given a wider margin than the others."""
ALPHA = 0.01
"""Chance of one or more SLOWER (or FASTER) among all metrics, when none is beyond its margin."""
BETA = 0.05
"""Chance that a metric slower by its margin or more is called not slower."""
POWER = 0.9
"""The chance of being found at which the minimum detectable effect is stated."""
BOOTSTRAPS = 200


class Verdict(StrEnum):
    """What is known of one metric."""

    SLOWER = "SLOWER"
    SAME = "SAME"
    FASTER = "FASTER"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Rule:
    """The numbers of the decision."""

    margin: float = MARGIN
    floor_seconds: float | None = None
    """A change smaller than this is let pass, however large its share; None: a part of the wall's margin."""
    alpha: float = ALPHA
    beta: float = BETA


@dataclass(frozen=True, slots=True)
class PairedSeries:
    """One metric in every accepted pair, seconds, in the order taken. ``wall`` is the base's wall that it is part of."""

    name: str
    base: tuple[float, ...]
    head: tuple[float, ...]
    wall: tuple[float, ...] | None = None
    """None for a metric that is no part of another: its own base is its wall."""
    floor_share: float = FLOOR_SHARE
    """Of this metric, where the rule gives no floor in seconds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One metric's verdict. Ratios are head / base - 1; None means that so few pairs cannot say."""

    name: str
    verdict: Verdict
    not_slower: bool
    """Proved to be slower by less than its margin: enough to pass, also where SAME and FASTER are not told apart."""
    pairs: int
    base_seconds: float
    head_seconds: float
    change: float
    low: float | None
    """With ``high``: holds for all metrics together, all looks counted, with error at most alpha on each side."""
    high: float | None
    at_most: float | None
    """This metric's change is below this with error at most beta."""
    margin: float
    """The margin that applied: the relative one or the floor, whichever is larger."""
    p_slower: float
    """Adjusted for looks and for the number of metrics."""
    detectable: float | None
    """The slowdown that would be found with probability POWER in so many pairs."""
    of_wall: bool
    """The ratios are shares of the wall, because the class is absent in one arm."""


def judge(series: Sequence[PairedSeries], rule: Rule, with_detectable: bool = True) -> tuple[Finding, ...]:
    """Decide every metric. All series hold the same pairs. Raises UserFacingError on values that cannot be compared.

    ``with_detectable=False`` leaves out the one costly figure, for looks whose findings nobody reads.
    """
    scored = [_score(one, rule) for one in series]
    start = rule.alpha / len(scored)
    slower = [_cheapest([test.p_above(s.margin) for test in s.charged(start)]) for s in scored]
    faster = [_cheapest([test.p_below(-s.margin) for test in s.charged(start)]) for s in scored]
    slower_adjusted, faster_adjusted = sequential.holm(slower), sequential.holm(faster)
    low_levels, high_levels = sequential.holm_levels(slower, rule.alpha), sequential.holm_levels(faster, rule.alpha)
    findings: list[Finding] = []
    for index, (one, score) in enumerate(zip(series, scored, strict=True)):
        open_looks, charged = score.charged(rule.beta), score.charged(start)
        at_most, at_least = _upper(open_looks, rule.beta), _lower(open_looks, rule.beta)
        not_slower = at_most < score.margin
        if slower_adjusted[index] <= rule.alpha:
            verdict, not_slower = Verdict.SLOWER, False
        elif faster_adjusted[index] <= rule.alpha:
            verdict, not_slower = Verdict.FASTER, True
        elif not_slower and at_least > -score.margin:
            verdict = Verdict.SAME
        else:
            verdict = Verdict.UNDECIDED
        findings.append(
            Finding(
                name=one.name,
                verdict=verdict,
                not_slower=not_slower,
                pairs=len(one.base),
                base_seconds=median(one.base),
                head_seconds=median(one.head),
                change=math.expm1(SignedRank(score.values).estimate),
                low=_ratio(_lower(charged, low_levels[index])),
                high=_ratio(_upper(charged, high_levels[index])),
                at_most=_ratio(at_most),
                margin=math.expm1(score.margin),
                p_slower=slower_adjusted[index],
                detectable=_detectable(score, start) if with_detectable else None,
                of_wall=score.of_wall,
            )
        )
    return tuple(findings)


def pairs_to_convict(metrics: int, alpha: float = ALPHA) -> int:
    """The fewest pairs after which SLOWER can fall, with ``metrics`` metrics judged together."""
    look = sequential.FIRST_LOOK
    while not _can_convict(look, alpha / metrics):
        look = sequential.next_look(look)
    return look


@dataclass(frozen=True, slots=True)
class _Score:
    values: Floats
    margin: float
    of_wall: bool
    looks: tuple[SignedRank, ...]

    def charged(self, start: float) -> list[SignedRank]:
        """The looks that cost error rate: the first is the first one at which so few pairs could reach the level at all."""
        return [test for test in self.looks if _can_convict(test.n, start)]


def _score(series: PairedSeries, rule: Rule) -> _Score:
    base, head = np.asarray(series.base, float), np.asarray(series.head, float)
    if not (np.isfinite(base).all() and np.isfinite(head).all()) or min(base.min(), head.min()) < 0:
        raise UserFacingError(f"metric {series.name!r}: seen a negative or infinite time; mend the workload")
    wall = median(series.wall) if series.wall is not None else median(series.base)
    floor = rule.floor_seconds if rule.floor_seconds is not None else series.floor_share * rule.margin * wall
    if base.min() > 0 and head.min() > 0:
        values, margin, of_wall = np.log(head / base), max(rule.margin, floor / float(np.median(base))), False
    elif series.wall is not None and wall > 0:
        # A class that one arm lacks has no ratio: its difference is judged as a share of the wall, against the floor alone.
        values, margin, of_wall = np.log1p(np.maximum((head - base) / wall, -0.999)), floor / wall, True
    else:
        raise UserFacingError(f"metric {series.name!r}: seen a time of 0; expected seconds above 0, mend the workload")
    looks = tuple(SignedRank(values[:pairs]) for pairs in sequential.looks_up_to(len(values)))
    return _Score(values, math.log1p(margin), of_wall, looks)


def _can_convict(pairs: int, start: float) -> bool:
    return signed_rank.smallest_p(pairs) <= start * sequential.share(1)


def _cheapest(p_values: Sequence[float]) -> float:
    """The smallest total error rate at which some look so far rejects; one p-value a look."""
    return min((p_value / sequential.share(k) for k, p_value in enumerate(p_values, 1)), default=1.0)


def _lower(looks: Sequence[SignedRank], level: float) -> float:
    """The best lower limit of all looks so far, each at its share of ``level``."""
    return max((test.lower_limit(level * sequential.share(k)) for k, test in enumerate(looks, 1)), default=-math.inf)


def _upper(looks: Sequence[SignedRank], level: float) -> float:
    return min((test.upper_limit(level * sequential.share(k)) for k, test in enumerate(looks, 1)), default=math.inf)


def _detectable(score: _Score, level: float) -> float | None:
    """Minimum detectable slowdown from the spread that these pairs showed.

    A bootstrap of the pairs' residuals with random signs (they are symmetric) gives the distribution of the last look's
    lower limit; a slowdown of margin minus its 10 % quantile lifts that limit over the margin in 90 of 100.
    """
    looks = score.charged(level)
    if not looks:
        return None
    last = looks[-1].n
    residuals = score.values[:last] - looks[-1].estimate
    random = np.random.default_rng(last)
    resampled = random.choice(residuals, (BOOTSTRAPS, last)) * random.choice([-1.0, 1.0], (BOOTSTRAPS, last))
    spent = level * sequential.share(len(looks))
    limits = [SignedRank(sample).lower_limit(spent) for sample in resampled]
    return math.expm1(score.margin - float(np.quantile(limits, 1 - POWER)))


def _ratio(log_ratio: float) -> float | None:
    return math.expm1(log_ratio) if math.isfinite(log_ratio) else None
