"""Adds pairs until the verdict falls or the time budget ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ..attribution.statistics import paired, sequential
from ..attribution.statistics.paired import FLOOR_SHARE, Finding, PairedSeries, Rule, Verdict
from .exits import MachineUnfitError, NothingMeasuredError
from .protocol import GAPS, WALL, group_of
from .replicate import Pair

GAP_FLOOR_SHARE = 0.5
"""The floor of gaps: this part of the margin of the wall (1 % of the wall). What a host leaves between kernels differs from
process to process by more than a kernel does; on an H200 0.36 to 0.48 ms of 12.7, which is far from 0.1 % of the wall."""
EXTRA_LOOKS = 2
"""A red verdict stands at once; this many further looks are granted to tell which classes moved and which did not."""
PATIENCE = 6
"""So many quarantined pairs are borne before the machine is called unfit, if they are also the majority."""

Measure = Callable[[str], Pair]
"""Measures one pair, given the arm that runs first."""


def series_of(pairs: Sequence[Pair], patterns: Sequence[str] = ()) -> list[PairedSeries]:
    """The metrics of the accepted pairs that match one of ``patterns`` (all where there is none), in order of appearance.

    A class that a process did not run took 0 s there. Raises NothingMeasuredError where nothing matches.
    """
    used = accepted(pairs)
    names = list(dict.fromkeys(name for pair in used for arm in (pair.base, pair.head) for name in arm))
    chosen = matching(names, patterns)
    if names and not chosen:
        raise NothingMeasuredError(f"--metric {' '.join(patterns)}: matches none of {', '.join(names)}")
    found: list[PairedSeries] = []
    for name in chosen:
        group, part = group_of(name)
        wall = f"{group}/{WALL}" if group and part != WALL and all(f"{group}/{WALL}" in pair.base for pair in used) else None
        found.append(
            PairedSeries(
                name,
                tuple(pair.base.get(name, 0.0) for pair in used),
                tuple(pair.head.get(name, 0.0) for pair in used),
                tuple(pair.base[wall] for pair in used) if wall else None,
                GAP_FLOOR_SHARE if part == GAPS else FLOOR_SHARE,
            )
        )
    return found


def matching(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """The names that one of ``patterns`` matches; all where there is no pattern."""
    return [name for name in names if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]


def accepted(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs that are not quarantined."""
    return [pair for pair in pairs if not pair.quarantined]


def settled(series: Sequence[PairedSeries], rule: Rule) -> bool:
    """Whether more pairs could change nothing that the gate's answer needs."""
    if not series:
        return False
    findings = paired.judge(series, rule, with_detectable=False)
    if not any(finding.verdict is Verdict.SLOWER for finding in findings):
        return all(finding.not_slower for finding in findings)
    if all(finding.not_slower or finding.verdict is Verdict.SLOWER for finding in findings):
        return True
    looks = sequential.looks_up_to(len(series[0].base))
    if len(looks) <= EXTRA_LOOKS:
        return False
    earlier = [first_pairs(one, looks[-1 - EXTRA_LOOKS]) for one in series]
    return any(f.verdict is Verdict.SLOWER for f in paired.judge(earlier, rule, with_detectable=False))


def first_pairs(series: PairedSeries, count: int) -> PairedSeries:
    """The same metric as it stood after ``count`` pairs."""
    wall = series.wall[:count] if series.wall is not None else None
    return replace(series, base=series.base[:count], head=series.head[:count], wall=wall)


def collect(
    pairs: list[Pair],
    measure: Measure,
    rule: Rule,
    patterns: Sequence[str],
    budget: float,
    save: Callable[[Sequence[Pair]], None],
    progress: Callable[[str], None],
    most_pairs: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Append to ``pairs`` until settled, or until another pair would not fit into ``budget`` seconds, or ``most_pairs``.

    ABBA: of four runs in a row the outer ones are one arm, the inner ones the other, so a steady drift cancels.
    Raises MachineUnfitError where the machine keeps spoiling pairs.
    """
    started, longest = clock(), max((pair.seconds for pair in pairs), default=0.0)
    while True:
        used = len(accepted(pairs))
        at_look = used in sequential.looks_up_to(used)
        if at_look and settled(series_of(pairs, patterns), rule):
            return
        _give_up_if_unfit(pairs)
        if (most_pairs is not None and used >= most_pairs) or clock() - started + longest > budget:
            return
        pair = measure("base" if used % 2 == 0 else "head")
        longest = max(longest, pair.seconds)
        pairs.append(pair)
        save(pairs)
        progress(_progress(pairs, patterns, rule, clock() - started, budget))


def _give_up_if_unfit(pairs: Sequence[Pair]) -> None:
    spoiled = [pair for pair in pairs if pair.quarantined]
    if len(spoiled) >= PATIENCE and len(spoiled) > len(pairs) - len(spoiled):
        raise MachineUnfitError(
            f"{len(spoiled)} of {len(pairs)} pairs quarantined, the last one: {spoiled[-1].quarantined}; "
            "free the machine and run again with --resume"
        )


def _progress(pairs: Sequence[Pair], patterns: Sequence[str], rule: Rule, elapsed: float, budget: float) -> str:
    last = pairs[-1]
    spent = f"{elapsed:.0f} of at most {budget:.0f} s"
    used = len(accepted(pairs))
    if last.quarantined:
        return f"pair quarantined ({last.quarantined}); {used} used, {spent}"
    if used in sequential.looks_up_to(used):
        findings = paired.judge(series_of(pairs, patterns), rule, with_detectable=False)
        return f"{used} pairs, {spent}: {_summary(findings)}"
    return f"{used} pairs, {spent}"


def _summary(findings: Sequence[Finding]) -> str:
    undecided = [f.name for f in findings if f.verdict is Verdict.UNDECIDED and not f.not_slower]
    slower = [f.name for f in findings if f.verdict is Verdict.SLOWER]
    words = [f"slower: {', '.join(slower)}"] if slower else []
    if not undecided:
        return "; ".join([*words, "all decided"])
    names = ", ".join(undecided[:3]) + (", ..." if len(undecided) > 3 else "")
    return "; ".join([*words, f"{len(undecided)} of {len(findings)} open ({names})"])
