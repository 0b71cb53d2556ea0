"""The values of every series, taken from one record; and where records are kept."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any

from .attribution.checks import best_wall
from .attribution.macs import us_per_gmac
from .attribution.pair import pair
from .attribution.record import ENGINE, PEER, Record, Wall
from .attribution.record_files import append_record, read_records
from .models import model_name, result_name
from .series import key, samples


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
    """The newest record of a commit and of the named model on this machine, to take series from without measuring again."""
    folder, machine = os.environ.get("MINFER_RESULTS_DIR"), os.environ.get("MINFER_MACHINE")
    path = _record_path(folder, machine, commit) if folder and machine else None
    records = read_records(path) if path is not None and path.is_file() else []
    return next((record for record in reversed(records) if result_name(record.model.name) == model_name()), None)


def _record_path(folder: str, machine: str, commit: str) -> Path:
    return Path(folder) / machine / "records" / f"{commit}.jsonl"
