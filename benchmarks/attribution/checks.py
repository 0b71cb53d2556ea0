"""The trust rules: what a decomposition, a wall and a record must satisfy, each as one named check with its limit.

A failed check does not stop anything here: it stays on the record and is shown beside every figure drawn from it.
The rules in prose, with these limits: docs/method.md, "Trust rules".
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from .record import ENGINE, PEER, Check, Conditions, Decomposition, Quarantined, Record, Wall

MAX_GAP_SHARE = 0.05
"""Of the wall. Round r37 accepted 0.023; above the limit kernels no longer stand for the wall."""
MAX_TRACER_COST = 0.03
"""By how much tracing may lengthen the wall."""
MAX_UNCLASSIFIED_SHARE = 0.01
"""Of busy."""
MIN_PEER_UBATCHES = 2
"""Batch sizes that a peer must have been tried with before the faster of them is called its best."""
LISTED_SYMBOLS = 8


def closure(decomposition: Decomposition) -> Check:
    """Rule 1: wall = classes + copy-only + gaps, and busy = classes, to the nanosecond."""
    classes = sum(item.ns for item in decomposition.classes)
    parts = classes + decomposition.copy_ns + sum(decomposition.gap_ns.values())
    off = max(abs(decomposition.wall_ns - parts), abs(decomposition.busy_ns - classes))
    negative = [item.name for item in decomposition.classes if item.ns < 0]
    detail = f"negative time in {', '.join(negative)}" if negative else ""
    return Check("closure", off == 0 and not negative, float(off), 0.0, "ns", detail)


def busy_against_wall(decomposition: Decomposition) -> Check:
    """Rule 2: gap / wall. Over the limit the queue lists the gap itself."""
    gap = sum(decomposition.gap_ns.values())
    causes = ", ".join(f"{cause} {ns / 1e6:.3f} ms" for cause, ns in decomposition.gap_ns.items() if ns)
    return _share("gap share of wall", gap, decomposition.wall_ns, MAX_GAP_SHARE, causes)


def tracer_cost(untraced_ns: Sequence[int], traced_ns: Sequence[int]) -> Check:
    """Rule 3: median traced wall against median untraced wall of the same window."""
    name = "tracer's own cost"
    if not untraced_ns or not traced_ns:
        return Check(name, None, None, MAX_TRACER_COST, "share", "needs traced and untraced walls of one window")
    untraced = statistics.median(untraced_ns)
    extra = statistics.median(traced_ns) - untraced
    passed = extra <= MAX_TRACER_COST * untraced
    counts = f"{len(traced_ns)} traced, {len(untraced_ns)} not"
    return Check(name, passed, extra / untraced, MAX_TRACER_COST, "share", counts)


def quiet_machine(conditions: Sequence[Conditions], used: int, quarantined: Sequence[Quarantined]) -> Check:
    """Rule 4: no foreign process, no throttling. Samples that met one are quarantined: the rest must still be a majority."""
    name = "machine to itself"
    if not conditions:
        return Check(name, None, None, 0.0, "events", "no conditions were recorded")
    events = [
        f"{state.when}: {event}" for state in conditions for event in (*state.foreign_processes, *state.throttle_reasons)
    ]
    events += [f"sample {sample.index} quarantined: {sample.reason}" for sample in quarantined]
    passed = not any(state.foreign_processes or state.throttle_reasons for state in conditions) and len(quarantined) < used
    return Check(name, passed, float(len(events)), 0.0, "events", "; ".join(events))


def unclassified(decomposition: Decomposition) -> Check:
    """Rule 7: time of symbols that no rule names."""
    ns = sum(item.ns for item in decomposition.classes if item.name == "unclassified")
    shown = decomposition.unclassified[:LISTED_SYMBOLS]
    more = len(decomposition.unclassified) - len(shown)
    listed = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    return _share("unclassified share of busy", ns, decomposition.busy_ns, MAX_UNCLASSIFIED_SHARE, listed)


def peer_at_its_best(walls: Iterable[Wall]) -> Check:
    """Rule 8: of one engine and nt, several ubatch sizes were measured; the fastest is the baseline, all are stored."""
    ubatches = {wall.ubatch for wall in walls if wall.samples_ns}
    listed = ", ".join(map(str, sorted(ubatches)))
    passed = len(ubatches) >= MIN_PEER_UBATCHES
    return Check("peer at its best", passed, float(len(ubatches)), float(MIN_PEER_UBATCHES), "ubatch sizes", listed)


def timestamps_collected(decomposition: Decomposition) -> Check:
    """Rule 9: a timestamp of 0 was not collected; its launch is left out, so busy would be too small."""
    missing = decomposition.not_collected
    return Check(
        "timestamps collected", missing == 0, float(missing), 0.0, "launches", "left out of busy" if missing else ""
    )


def decomposition_checks(decomposition: Decomposition) -> tuple[Check, ...]:
    """The rules that need one decomposition only."""
    return (
        closure(decomposition),
        busy_against_wall(decomposition),
        unclassified(decomposition),
        timestamps_collected(decomposition),
    )


def wall_checks(wall: Wall, conditions: Sequence[Conditions] = ()) -> tuple[Check, ...]:
    """The rules that need one wall with its window's conditions."""
    checks = (quiet_machine(conditions, len(wall.samples_ns), wall.quarantined),)
    if wall.decomposition is None:
        return checks
    return (*checks, tracer_cost(wall.samples_ns, wall.traced_ns), *decomposition_checks(wall.decomposition))


def best_wall(walls: Iterable[Wall], engine: str, nt: int) -> Wall | None:
    """The wall that speaks for an engine at one nt: of a peer the fastest by median, None where it was not measured.

    The engine under test speaks with the gates that it was measured with first. Others beside them answer another question
    (three times the memory, say), and a faster one must not pass for the commit's own speed.
    """
    found = [wall for wall in walls if wall.engine == engine and wall.nt == nt and wall.samples_ns]
    if engine == ENGINE:
        found = [wall for wall in found if wall.gates == found[0].gates]
    return min(found, key=lambda wall: statistics.median(wall.samples_ns), default=None)


def record_checks(record: Record, peers: Sequence[str] = (PEER,)) -> tuple[Check, ...]:
    """The rules that need the record: each peer that was measured, at its best at every nt that it was measured at."""
    checks = []
    for peer in peers:
        for nt in sorted({wall.nt for wall in record.walls if wall.engine == peer}):
            check = peer_at_its_best(wall for wall in record.walls if wall.engine == peer and wall.nt == nt)
            name = f"{check.name}: {peer} @{nt}"
            checks.append(Check(name, check.passed, check.value, check.limit, check.unit, check.detail))
    return tuple(checks)


def _share(name: str, part: int, whole: int, limit: float, detail: str) -> Check:
    if whole <= 0:
        return Check(name, None, None, limit, "share", "nothing was busy")
    return Check(name, part / whole <= limit, part / whole, limit, "share", detail)
