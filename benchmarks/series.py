"""One measurement window a commit, handed out as many asv series.

asv calls ``setup_cache`` once per commit for all classes that inherit ``FromWindow`` (it goes by where the function stands).
The series are taken from the record there, once: asv starts a process for each value that it stores, and those only look
theirs up. What a record does not hold (another machine's prompt length, a class that this engine does not run, a peer that
is not there) is NaN, which asv shows as n/a.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .attribution.checks import best_wall
from .attribution.macs import us_per_gmac
from .attribution.pair import pair
from .attribution.record import Record, Wall, append_record, read_records

NTS = (128, 512, 3325)
"""Prompt lengths of all machines: a CPU measures the first two, a GPU the last two."""
CPU_NTS = (128, 512)
GPU_NTS = (512, 3325)
CLASSES = (
    "q4_K GEMM", "q6_K GEMM", "q5_0 GEMM", "q8_0 GEMM", "q4_1 GEMM", "f16 GEMM", "attention", "activation quantise",
    "weight dequantise", "norm", "rope", "elementwise", "kv write", "embedding", "logits", "copy", "unclassified",
)  # fmt: skip
"""Classes that have a series of their own; a record holds every class, also those not listed here."""
ENGINE, PEER = "minfer", "llama.cpp"
ABSENT = float("nan")


def measured_nts(on_gpu: bool) -> tuple[int, ...]:
    """MINFER_NTS ("128,512") where it is set, else the lengths of this kind of machine."""
    named = os.environ.get("MINFER_NTS")
    if named:
        return tuple(int(part) for part in named.split(","))
    return GPU_NTS if on_gpu else CPU_NTS


def described(unit: str, version: str = "1") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a benchmark its unit and its version; less is better in all of them, since asv takes it so.

    The version is set by hand: asv's own is a hash of the source text, so that editing a comment loses the history. Raise
    it when the values before and after are not comparable.
    """

    def describe(function: Callable[..., Any]) -> Callable[..., Any]:
        for name, value in (("unit", unit), ("direction", "lower"), ("version", version)):
            setattr(function, name, value)
        return function

    return describe


class FromWindow:
    """Base of every benchmark that reads the commit's record."""

    timeout = 1800
    processes = 1
    rounds = 1

    def setup_cache(self) -> dict[str, Any]:
        """Measure the commit: values by ``key``; empty for a commit too old to be measured."""
        from .window_cache import measure_commit

        record = measure_commit()
        return {} if record is None else values_of(record)

    # asv looks for the timeout of setup_cache on the function itself.
    setup_cache.timeout = 1800  # type: ignore[attr-defined]


def key(series: str, nt: int, kernel_class: str = "") -> str:
    """Where a value stands in what ``values_of`` returns."""
    return f"{series} {nt} {kernel_class}".rstrip()


def samples(values: Sequence[float]) -> dict[str, Any] | float:
    """What asv stores with median, quartiles and interval (it compares such results by Mann-Whitney)."""
    return {"samples": list(values), "number": 1} if values else ABSENT


def values_of(record: Record) -> dict[str, Any]:
    """Every value that a series takes from a record."""
    found: dict[str, Any] = {}
    for nt in sorted({wall.nt for wall in record.walls}):
        ours, theirs = best_wall(record.walls, ENGINE, nt), best_wall(record.walls, PEER, nt)
        if ours is not None:
            found.update(_own_values(ours))
        if ours is not None and theirs is not None:
            found.update(_pair_values(record, ours, theirs))
    return found


def _own_values(wall: Wall) -> dict[str, Any]:
    nt, part = wall.nt, wall.decomposition
    found: dict[str, Any] = {key("seconds_per_token", nt): samples([ns / 1e9 / nt for ns in wall.samples_ns])}
    if wall.peak_memory_bytes is not None:
        found[key("peak_memory_bytes", nt)] = float(wall.peak_memory_bytes)
    if wall.traced_ns:
        found[key("tracer_cost", nt)] = statistics.median(wall.traced_ns) / statistics.median(wall.samples_ns)
    if part is None:
        return found
    found[key("gap_ms", nt)] = sum(part.gap_ns.values()) / 1e6
    for item in part.classes:
        found[key("class_ms", nt, item.name)] = samples([ns / 1e6 for ns in item.samples_ns])
        unit = us_per_gmac(1.0, item.macs)
        if unit is not None:
            found[key("us_per_gmac", nt, item.name)] = samples([ns * unit for ns in item.samples_ns])
    return found


def _pair_values(record: Record, ours: Wall, theirs: Wall) -> dict[str, Any]:
    nt, both = ours.nt, pair(record, ours, record, theirs)
    found: dict[str, Any] = {key("peer_seconds_per_token", nt): samples([ns / 1e9 / nt for ns in theirs.samples_ns])}
    if len(ours.samples_ns) == len(theirs.samples_ns):
        # Sample i of both was taken right after each other: the quotient of a round is free of slow drift.
        rounds = zip(ours.samples_ns, theirs.samples_ns, strict=True)
        found[key("time_ratio", nt)] = samples([a / b for a, b in rounds])
    else:
        found[key("time_ratio", nt)] = both.wall_ratio.value
    for item in both.classes:
        found[key("cost_ratio", nt, item.name)] = item.ratio.value
    return found


def keep_record(record: Record) -> Path | None:
    """File the record under the results folder that asv was given; None on a dry run."""
    folder = os.environ.get("MINFER_RESULTS_DIR")
    if not folder:
        return None
    path = _record_path(folder, record.machine.name, record.commit)
    append_record(path, record)
    return path


def kept_record(commit: str) -> Record | None:
    """The newest record of a commit on this machine, to take series from without measuring again; None if there is none."""
    folder, machine = os.environ.get("MINFER_RESULTS_DIR"), os.environ.get("MINFER_MACHINE")
    path = _record_path(folder, machine, commit) if folder and machine else None
    return read_records(path)[-1] if path is not None and path.is_file() else None


def _record_path(folder: str, machine: str, commit: str) -> Path:
    return Path(folder) / machine / "records" / f"{commit}.jsonl"
