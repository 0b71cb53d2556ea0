"""Takes samples of several arms in turn, so that drift of the machine meets all of them alike: A B, B A, A B, ..."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .attribution.record import Quarantined
from .capture.conditions import Probe, quarantine_reason

SETTLE_S = 0.03
"""Idle time before each sample: thread pools of the arm before (OpenBLAS, OpenMP) spin for up to 25 ms after their work."""
EXTRA_ROUNDS = 1.0
"""Share of the planned rounds that may be taken again in place of quarantined ones."""


@dataclass(frozen=True, slots=True)
class Round:
    """One sample of each arm, taken right after each other, in ns. ``reason`` says why it must not be used, if so."""

    ns: dict[str, int]
    reason: str | None


def planned_rounds(warm_ns: int, *, most: int, least: int, seconds: float) -> int:
    """Rounds that fit in ``seconds`` when one takes ``warm_ns``, between ``least`` and ``most``."""
    return max(least, min(most, int(seconds * 1e9 // max(1, warm_ns))))


def interleaved(
    arms: Mapping[str, Callable[[], int]],
    wanted: int,
    probe: Probe,
    progress: Callable[[int, int, str | None], None] = lambda done, of, reason: None,
) -> list[Round]:
    """Rounds of one sample an arm until ``wanted`` of them are clean, or the extra ones are used up as well.

    Odd rounds run the arms backwards (ABBA), which cancels a linear drift within each pair of rounds. A round is quarantined
    whole: its samples belong together.
    """
    rounds: list[Round] = []
    clean = 0
    names = list(arms)
    while clean < wanted and len(rounds) < wanted * (1 + EXTRA_ROUNDS):
        ns: dict[str, int] = {}
        reasons: list[str] = []
        for name in names if len(rounds) % 2 == 0 else reversed(names):
            time.sleep(SETTLE_S)
            with probe.watching(in_process=True) as watch:
                ns[name] = arms[name]()
            reason = quarantine_reason(watch.conditions)
            if reason is not None:
                reasons.append(f"{name}: {reason}")
        rounds.append(Round(ns, "; ".join(reasons) or None))
        clean += not reasons
        progress(clean, wanted, rounds[-1].reason)
    return rounds


def usable(rounds: Sequence[Round], least: int) -> tuple[Sequence[Round], bool]:
    """The clean rounds, and whether there are at least ``least`` of them; without that many all rounds stand, flagged."""
    clean = [taken for taken in rounds if taken.reason is None]
    return (clean, True) if len(clean) >= least else (rounds, False)


def quarantined(rounds: Sequence[Round], arm: str) -> tuple[Quarantined, ...]:
    """What was set aside of one arm."""
    return tuple(Quarantined(i, taken.ns[arm], taken.reason) for i, taken in enumerate(rounds) if taken.reason is not None)
