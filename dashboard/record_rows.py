"""A decomposition record laid out as rows: one a wall, one a part of its decomposition (classes, copy, gaps by cause)."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from typing import Any

from benchmarks.attribution.record import Decomposition, Record, Wall

from .colours import COPY, GAP_PREFIX

Row = dict[str, Any]


@dataclass
class RecordRows:
    walls: list[Row] = field(default_factory=list)
    parts: list[Row] = field(default_factory=list)

    def add(self, record: Record, line: int) -> None:
        """Append the rows of the record that stands at ``line`` (from 0) of its file."""
        for place, wall in enumerate(record.walls):
            key = {
                "machine": record.machine.name,
                "commit": record.commit,
                "window": record.window.id,
                "engine": wall.engine,
                "backend": wall.backend,
                "nt": wall.nt,
                "line": line,
                "place": place,
            }
            self.walls.append(key | _wall(record, wall))
            if wall.decomposition is not None:
                self.parts.extend(key | part for part in _parts(wall.decomposition))


def _wall(record: Record, wall: Wall) -> Row:
    taken = wall.decomposition
    checks = (*wall.checks, *record.checks)
    return {
        "commit_time": record.commit_time,
        "started": record.window.started,
        "model": record.model.name,
        "digest": record.model.digest,
        "engine_version": wall.engine_version,
        "ubatch": wall.ubatch,
        "gates": json.dumps(wall.gates, sort_keys=True),
        "instrument": f"{record.instrument} {record.instrument_version}",
        "driver": record.machine.driver or "",
        "wall_ns": int(statistics.median(wall.samples_ns)) if wall.samples_ns else None,
        "lowest_ns": min(wall.samples_ns, default=None),
        "highest_ns": max(wall.samples_ns, default=None),
        "samples": len(wall.samples_ns),
        "quarantined": len(wall.quarantined),
        "traced_ns": taken.wall_ns if taken else None,
        "busy_ns": taken.busy_ns if taken else None,
        "gap_ns": sum(taken.gap_ns.values()) if taken else None,
        "why_not": wall.why_not_decomposed,
        "failed_checks": json.dumps([check.name for check in checks if check.passed is False]),
        "unapplied_checks": sum(check.passed is None for check in checks),
        "notes": json.dumps(record.notes),
    }


def _parts(taken: Decomposition) -> list[Row]:
    base = {"traced_ns": taken.wall_ns, "busy_ns": taken.busy_ns}
    rows: list[Row] = [
        base | {"part": item.name, "ns": item.ns, "launches": item.launches, "macs": item.macs, "bytes": item.bytes}
        for item in taken.classes
    ]
    others = {COPY: taken.copy_ns} | {GAP_PREFIX + cause: ns for cause, ns in taken.gap_ns.items()}
    rows += [base | {"part": name, "ns": ns, "launches": None, "macs": None, "bytes": None} for name, ns in others.items()]
    return rows
