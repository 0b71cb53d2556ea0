"""A decomposition record laid out as rows: one a wall, one a part of its decomposition (classes, copy, gaps by cause)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from benchmarks.attribution.checks import best_wall
from benchmarks.attribution.record import Decomposition, Record, Wall
from benchmarks.attribution.spread import wall_figure

from .colours import COPY, GAP_PREFIX
from .portrait import peer_pair

Row = dict[str, Any]


@dataclass
class RecordRows:
    walls: list[Row] = field(default_factory=list)
    parts: list[Row] = field(default_factory=list)
    records: list[Row] = field(default_factory=list)

    def add(self, record: Record, line: int) -> None:
        """Append the rows of the record that stands at ``line`` (from 0) of its file."""
        named = {"machine": record.machine.name, "commit": record.commit, "line": line}
        self.records.append(named | {"started": record.window.started, "slim": _slim(record).to_json()})
        for place, wall in enumerate(record.walls):
            key = named | {
                "window": record.window.id,
                "engine": wall.engine,
                "backend": wall.backend,
                "nt": wall.nt,
                "place": place,
            }
            self.walls.append(key | _wall(record, wall))
            if wall.decomposition is not None:
                self.parts.extend(key | part for part in _parts(wall.decomposition))


def _slim(record: Record) -> Record:
    """The record without splits, symbols and timelines: what questions over many commits need, at a tenth of the size."""
    return dataclasses.replace(record, walls=tuple(map(_without_splits, record.walls)))


def _without_splits(wall: Wall) -> Wall:
    taken = wall.decomposition
    if taken is None:
        return wall
    classes = tuple(dataclasses.replace(item, splits=(), symbols=()) for item in taken.classes)
    return dataclasses.replace(wall, decomposition=dataclasses.replace(taken, classes=classes, timeline=None))


def _wall(record: Record, wall: Wall) -> Row:
    taken = wall.decomposition
    checks = (*wall.checks, *record.checks)
    sampled = bool(wall.samples_ns) or taken is not None
    quoted = wall_figure(wall) if sampled else None
    compared, why = peer_pair(record, wall) if sampled else (None, "no wall was measured")
    against = compared.wall_ratio if compared else None
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
        "best": wall is best_wall(record.walls, wall.engine, wall.nt),
        "wall_ns": quoted.value if quoted else None,
        "low_ns": quoted.interval.low if quoted and quoted.interval else None,
        "high_ns": quoted.interval.high if quoted and quoted.interval else None,
        "ratio": against.value if against else None,
        "ratio_low": against.interval.low if against and against.interval else None,
        "ratio_high": against.interval.high if against and against.interval else None,
        "no_ratio": why,
        "samples": len(wall.samples_ns),
        "quarantined": len(wall.quarantined),
        "traced_ns": taken.wall_ns if taken else None,
        "busy_ns": taken.busy_ns if taken else None,
        "gap_ns": sum(taken.gap_ns.values()) if taken else None,
        "why_not": wall.why_not_decomposed,
        "failed_checks": json.dumps([check.name for check in checks if check.passed is False]),
        "unapplied_checks": sum(check.passed is None for check in checks),
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
