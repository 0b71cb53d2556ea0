"""What speaks for and against the numbers: noise by machine, quarantined samples, co-tenants, failed checks, the CI gate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.record import Record
from benchmarks.attribution.statistics.binomial import Rate
from benchmarks.attribution.statistics.calibration import Calibration, read_calibrations


def noise_by_machine(walls: pd.DataFrame) -> pd.DataFrame:
    """One row a machine, engine and nt: how far walls spread inside a window, and from one window to the next.

    Inside: half the interval of a window's median, as a share of it; the median over windows. Between: the absolute change
    from one commit's window to the next commit's, as a share; the median, which a few real steps do not move.
    """
    rows = []
    kept = walls[walls["best"] & walls["wall_ns"].notna()]
    for (machine, engine, nt), group in kept.groupby(["machine", "engine", "nt"]):
        ordered = group.sort_values(["order", "started"])
        inside = ((ordered["high_ns"] - ordered["low_ns"]) / 2 / ordered["wall_ns"]).median()
        between = (ordered["wall_ns"].diff().abs() / ordered["wall_ns"].shift()).median()
        rows.append(
            {
                "machine": machine,
                "engine": engine,
                "nt": nt,
                "windows": len(ordered),
                "samples a window": ordered["samples"].median(),
                "inside a window (± %)": 100 * inside,
                "from window to window (%)": 100 * between,
                "quarantined samples": int(ordered["quarantined"].sum()),
            }
        )
    return pd.DataFrame(rows)


def quarantined(records: Sequence[Record]) -> pd.DataFrame:
    """Every sample that was taken and is not used, newest first."""
    rows = [
        {"commit": r.commit[:8], "window": r.window.id, "engine": w.engine, "nt": w.nt, "sample": q.index, "ms": q.ns / 1e6}
        | {"reason": q.reason}
        for r in reversed(records)
        for w in r.walls
        for q in w.quarantined
    ]
    return pd.DataFrame(rows)


def disturbed(records: Sequence[Record]) -> pd.DataFrame:
    """Every moment at which a foreign process or a throttle was seen, newest first."""
    rows = [
        {"commit": r.commit[:8], "window": r.window.id, "moment": state.when, "time": state.time, "load": state.load_average}
        | {"other processes": "; ".join(state.foreign_processes), "throttling": "; ".join(state.throttle_reasons)}
        for r in reversed(records)
        for state in r.window.conditions
        if state.foreign_processes or state.throttle_reasons
    ]
    return pd.DataFrame(rows)


def failed_checks(walls: pd.DataFrame) -> pd.DataFrame:
    """How often each check failed, over all walls of a selection, and on which commit last."""
    counts: Counter[str] = Counter()
    last: dict[str, str] = {}
    for row in walls.sort_values("order").itertuples():
        for name in json.loads(str(row.failed_checks)):
            counts[name] += 1
            last[name] = str(row.short)
    rows = [{"check": name, "walls": count, "of": len(walls), "last on": last[name]} for name, count in counts.most_common()]
    return pd.DataFrame(rows)


def calibrations(results: Path, machine: str) -> tuple[list[Calibration], str]:
    """The CI gate's calibrations on a machine, oldest first, and what could not be read."""
    try:
        return read_calibrations(results / machine), ""
    except (UserFacingError, OSError, UnicodeDecodeError) as error:
        return [], str(error)


def calibrated_machines(results: Path) -> list[str]:
    """Machines whose folder holds calibrations of the CI gate."""
    return sorted(path.parent.name for path in results.glob("*/calibration") if any(path.glob("*.jsonl")))


def gate_table(found: Sequence[Calibration]) -> pd.DataFrame:
    """One row a calibration and kind of trial: how often the gate alarmed, missed or could not tell, with 95 % intervals."""
    rows: list[dict[str, object]] = []
    for one in found:
        named = {"time": one.time[:16], "commit": one.commit[:8], "workload": one.workload, "margin (%)": 100 * one.margin}
        if one.identical:
            seconds, pairs = one.cost(one.identical)
            said = _rates("identical commits: called SLOWER", one.false_alarms)
            rows.append(said | {"pairs": pairs, "seconds": seconds} | named)
        for kind in sorted({trial.kind for trial in one.injected()}):
            trials = one.injected(kind)
            seconds, pairs = one.cost(trials)
            slowed = "/".join(sorted({f"{100 * trial.slowdown:g} %" for trial in trials}))
            said = _rates(f"{kind} slowed {slowed}: found", one.power(kind))
            rows.append(said | {"pairs": pairs, "seconds": seconds} | named)
    return pd.DataFrame(rows)


def gate_sentence(one: Calibration) -> str:
    """A calibration in a sentence: false alarms and slowdowns found, as counts."""
    identical, injected = one.false_alarms, one.injected()
    parts = []
    if identical is not None:
        parts.append(
            f"{round(identical.value * identical.trials)} of {identical.trials} identical commits were called SLOWER "
            f"(95 % interval {100 * identical.low:.2g} to {100 * identical.high:.2g} %)"
        )
    if injected:
        power = one.power()
        sizes = ", ".join(sorted({f"{100 * trial.slowdown:g} %" for trial in injected}))
        if power is not None:
            parts.append(f"{round(power.value * power.trials)} of {power.trials} slowdowns of {sizes} were found")
    return "; ".join(parts) + "."


def _rates(what: str, seen: Rate | None) -> dict[str, object]:
    if seen is None:
        return {"trials of": what}
    return {
        "trials of": what,
        "rate (%)": 100 * seen.value,
        "low (%)": 100 * seen.low,
        "high (%)": 100 * seen.high,
        "trials": seen.trials,
    }
