"""One wall in numbers: what is quoted of it, its classes, its checks. The arithmetic is benchmarks.attribution's."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from benchmarks.attribution.checks import best_wall
from benchmarks.attribution.macs import GMAC
from benchmarks.attribution.pair import ClassPair, Pair, PairError, cost_figure, pair
from benchmarks.attribution.record import PEER, ClassTime, Record, Wall
from benchmarks.attribution.recover import ceiling_cost, tokens_per_second
from benchmarks.attribution.spread import Figure, class_figure, wall_figure

from .colours import COPY, GAP_PREFIX


def wall_label(wall: Wall) -> str:
    """Tells the walls of one record and nt apart."""
    gates = ",".join(f"{name}={value}" for name, value in sorted(wall.gates.items()) if value is not False)
    return f"{wall.engine} {wall.backend}, ubatch {wall.ubatch}" + (f" ({gates})" if gates else "")


def short_label(wall: Wall) -> str:
    """For the eye, not for a URL: gates that are on by their names alone."""
    gates = ", ".join(
        name if value is True else f"{name}={value}" for name, value in sorted(wall.gates.items()) if value is not False
    )
    return f"{wall.engine}, ubatch {wall.ubatch}" + (f" ({gates})" if gates else "")


def best_of_each(walls: Sequence[Wall]) -> list[Wall]:
    """Of each engine with the same gates the wall of lowest median: the others are slower ubatches of the same thing."""
    best: dict[tuple[str, str], Wall] = {}
    for wall in walls:
        key = (wall.engine, json.dumps(wall.gates, sort_keys=True))
        if key not in best or wall_figure(wall).value < wall_figure(best[key]).value:
            best[key] = wall
    return list(best.values())


def short_labels(walls: Sequence[Wall]) -> list[str]:
    """The engine's name where that tells the walls apart, with ubatch and gates where it does not."""
    for label in (lambda wall: wall.engine, lambda wall: f"{wall.engine}, ubatch {wall.ubatch}", short_label):
        found = [label(wall) for wall in walls]
        if len(set(found)) == len(found):
            return found
    return [f"{label} #{place}" for place, label in enumerate(map(wall_label, walls), 1)]


def peer_pair(record: Record, wall: Wall) -> tuple[Pair | None, str]:
    """The pair of a wall with its peer's best wall in the same record, or None and why there is none."""
    if wall.engine == PEER:
        return None, "the peer itself"
    peer = best_wall(record.walls, PEER, wall.nt)
    if peer is None:
        return None, f"{PEER} was not measured at nt {wall.nt} in this window"
    try:
        return pair(record, wall, record, peer), ""
    except PairError as error:
        return None, str(error)


def with_range(figure: Figure, form: str = ",.4g") -> str:
    """A figure and its interval, as text."""
    text = format(figure.value, form)
    if figure.interval is None:
        return text
    return f"{text} [{figure.interval.low:{form}}, {figure.interval.high:{form}}]"


def quoted(record: Record, wall: Wall) -> list[tuple[str, str, str]]:
    """What stands above the portrait: (label, value, help)."""
    total = wall_figure(wall).scaled(1e-6)
    rate = tokens_per_second(wall.nt, total.value)
    both, why = peer_pair(record, wall)
    checks = (*wall.checks, *record.checks)
    failed = [check.name for check in checks if check.passed is False]
    spread = (
        f"interval {total.interval.low:,.4g} to {total.interval.high:,.4g} ms at {total.interval.confidence:.1%}"
        if total.interval
        else "one sample"
    )
    tiles = [
        (
            "Wall",
            f"{total.value:,.4g} ms",
            f"Median of {len(wall.samples_ns)} untraced samples, {spread}; {len(wall.quarantined)} quarantined.",
        ),
        ("Prefill rate", f"{rate:,.0f} tok/s" if rate >= 100 else f"{rate:,.3g} tok/s", f"{wall.nt} tokens / wall"),
        (
            f"Time / {PEER}'s",
            f"{both.wall_ratio.value:.3g} ×" if both else "none",
            f"Our wall / theirs: {with_range(both.wall_ratio)}" if both else why,
        ),
    ]
    if wall.decomposition is not None:
        gap = 100 * sum(wall.decomposition.gap_ns.values()) / wall.decomposition.wall_ns
        tiles.append(("Gaps", f"{gap:.2f} %", "Share of the traced wall in which neither a kernel nor a copy ran."))
    passed = sum(check.passed is True for check in checks)
    tiles.append(("Checks", f"{passed} of {len(checks)}", f"Failed: {', '.join(failed)}" if failed else "None failed."))
    return tiles


def class_table(record: Record, wall: Wall) -> pd.DataFrame:
    """One row a class, copies and gaps too: time, shares, launches, work, cost, rate, share of the ceiling, peer, ratio."""
    taken = wall.decomposition
    if taken is None:
        return pd.DataFrame()
    both, _ = peer_pair(record, wall)
    paired = {item.name: item for item in both.classes} if both else {}
    rows = [
        _class_row(
            item, taken.wall_ns, taken.busy_ns, paired.get(item.name), ceiling_cost(record.ceilings, item.name), wall.nt
        )
        for item in taken.classes
    ]
    others = {COPY: taken.copy_ns} | {GAP_PREFIX + cause: ns for cause, ns in taken.gap_ns.items()}
    rows += [
        {
            "class": name,
            "class_ms": ns / 1e6,
            "share_of_busy": 100 * ns / max(taken.busy_ns, 1),
            "share_of_wall": 100 * ns / taken.wall_ns,
        }
        for name, ns in others.items()
        if ns
    ]
    return pd.DataFrame(rows).sort_values("class_ms", ascending=False, ignore_index=True).dropna(axis="columns", how="all")


def _class_row(
    item: ClassTime, wall_ns: int, busy_ns: int, both: ClassPair | None, ceiling: tuple[str, float] | None, nt: int
) -> dict[str, object]:
    cost = cost_figure(class_figure(item), item.macs)
    row: dict[str, object] = {
        "class": item.name,
        "class_ms": item.ns / 1e6,
        "share_of_wall": 100 * item.ns / wall_ns,
        "cost": cost.value if cost else None,
        f"{PEER} (µs/GMAC)": both.b_cost.value if both and both.b_cost else None,
        f"ratio @{nt}": both.ratio.value if both else None,
        f"interval @{nt}": _interval(both.ratio) if both else None,
        "share_of_busy": 100 * item.ns / max(busy_ns, 1),
        "launches": item.launches,
        "gmac": item.macs / GMAC if item.macs else None,
        # 2 operations a multiply-accumulate: 1e9 of them in c microseconds are 2e3 / c TFLOP/s.
        "tflops": 2e3 / cost.value if cost and cost.value else None,
        "share_of_ceiling": 100 * ceiling[1] / cost.value if cost and cost.value and ceiling else None,
    }
    return row


def _interval(figure: Figure) -> str | None:
    return f"{figure.interval.low:.3g} to {figure.interval.high:.3g}" if figure.interval else None


def checks_table(record: Record, wall: Wall) -> pd.DataFrame:
    """Failed checks first, then those that could not be applied, then the passed ones."""
    word = {False: "FAILED", None: "not applied", True: "passed"}
    rows = [
        {
            "check": check.name,
            "outcome": word[check.passed],
            "value": check.value,
            "limit": check.limit,
            "unit": check.unit,
            "detail": check.detail,
        }
        for check in sorted((*wall.checks, *record.checks), key=lambda check: (check.passed is True, check.passed is None))
    ]
    return pd.DataFrame(rows, columns=["check", "outcome", "value", "limit", "unit", "detail"])
