"""The object that ``attribute --json`` prints. Times in ns, shares of 1; null where unknown, never 0."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .attribute import Answer, DeviceAnswer
from .classes import UNCLASSIFIED
from .macs import GMAC, us_per_gmac
from .record import ClassTime


def to_json(answer: Answer) -> dict[str, Any]:
    """The object that ``--json`` prints: format, window, checks, devices; null where unknown."""
    window = answer.window
    starts = [item.window_ns[0] for item in answer.devices if item.window_ns]
    ends = [item.window_ns[1] for item in answer.devices if item.window_ns]
    out: dict[str, Any] = {
        "format": answer.format,
        "trace": answer.path,
        "window": {
            "kind": window.kind,
            "name": window.name,
            "occurrence": window.occurrence,
            "occurrences": window.occurrences,
            "start_ns": min(starts, default=None),
            "end_ns": max(ends, default=None),
            "description": window.sentence,
        },
        "checks": [{"device": device, **asdict(check)} for device, check in answer.all_checks],
        "devices": {item.device: _device_json(item) for item in answer.devices},
        "notes": list(answer.notes),
    }
    if answer.bench_results:
        out["bench_results"] = [{**asdict(row), "samples_ns": list(row.samples_ns)} for row in answer.bench_results]
    if answer.profiles:
        out["profiles"] = [{**asdict(row), "bytes_per_second": row.bytes_per_second} for row in answer.profiles]
    return out


def _device_json(item: DeviceAnswer) -> dict[str, Any]:
    part = item.decomposition
    unknown = next((row for row in item.classes if row.name == UNCLASSIFIED), None)
    return {
        "name": item.name,
        "kernels": item.kernels,
        "summed_ns": item.summed_ns,
        "busy_ns": None if part is None else part.busy_ns,
        "active_ns": None if part is None else part.busy_ns + part.copy_ns,
        "span_ns": None if part is None else part.span_ns,
        "wall_ns": None if part is None else part.wall_ns,
        "copy_ns": None if part is None else part.copy_ns,
        "copies_summed_ns": None if part is None else part.copies_summed_ns,
        "gap_ns": None if part is None else dict(part.gap_ns),
        "window_ns": None if item.window_ns is None else list(item.window_ns),
        "classes": [_class_json(item, row) for row in item.classes],
        "unclassified": [] if unknown is None else list(unknown.symbols),
        "ranges": [
            {"name": row.name, "ns": row.ns, "launches": row.launches, "classes": dict(row.classes)} for row in item.ranges
        ],
        "copies": [asdict(row) for row in item.copies],
        "queue": [{**asdict(entry), "chain": list(entry.chain)} for entry in item.queue],
    }


def _class_json(device: DeviceAnswer, row: ClassTime) -> dict[str, Any]:
    return {
        "name": row.name,
        "ns": row.ns,
        "launches": row.launches,
        "share_of_busy": device.share(row),
        "gmac": None if row.macs is None else row.macs / GMAC,
        "us_per_gmac": us_per_gmac(row.ns, row.macs),
        "symbols": list(row.symbols),
        "splits": [
            {
                "operation": split.operation,
                "ns": split.ns,
                "launches": split.launches,
                "gmac": None if split.macs is None else split.macs / GMAC,
            }
            for split in row.splits
        ],
    }
