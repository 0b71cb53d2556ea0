"""Chrome JSON as torch.profiler (kineto) writes it, plain or gzip.

Times are decimal microseconds, often of a size where a double resolves only a quarter of one: they are read as decimals
and become exact integer ns. A kernel counts whether or not an API call is linked to it: CUDA graphs link hundreds to
one, and a profiler that starts late links none.
Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; ``displayTimeUnit`` only says
how a viewer prints, ``baseTimeNanoseconds`` only moves the origin: neither changes a duration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..events import ApiCalls, Copies, Int32, Int64, Launches, Ranges, Trace, TraceError
from .chrome_columns import ABSENT, ARGUMENTS, EventParser, integers, nanoseconds, shapes
from .columns import Names, check_times, device_ids, joined, usable
from .json_stream import EventBlocks

FORMAT = "kineto json"
KERNEL, COPY, MEMSET, API, RANGE, OTHER = range(6)
CATEGORIES = {
    "kernel": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": MEMSET,
    "memset": MEMSET,
    "cuda_runtime": API,
    "cuda_driver": API,
    "runtime": API,
    "user_annotation": RANGE,
}
"""Category of an event in lower case. Before PyTorch 1.12 they were "Kernel", "Memcpy", "Memset" and "Runtime"."""


@dataclass
class _Columns:
    start: list[Int64] = field(default_factory=list)
    end: list[Int64] = field(default_factory=list)
    name: list[Int32] = field(default_factory=list)
    thread: list[Int64] = field(default_factory=list)
    values: dict[str, list[Int64]] = field(default_factory=dict)
    grid: list[Int32] = field(default_factory=list)
    block: list[Int32] = field(default_factory=list)


def read(path: Path) -> Trace:
    """Kernels, copies, API calls and user annotations of one profile. Raises TraceError."""
    columns = {kind: _Columns() for kind in range(OTHER)}
    names, copy_kinds = Names(), Names()
    blocks: EventBlocks[Any] = EventBlocks(path, EventParser(path))
    categories: set[str] = set()
    for events in blocks:
        _sort_in(events, columns, names, copy_kinds, categories, path)
    launches, notes = _launches(columns[KERNEL], path), list[str]()
    if not len(launches):
        known = ", ".join(sorted(categories)[:6]) or "none"
        notes.append(f"no kernel event: no GPU activity was recorded (event categories seen: {known})")
    if len(launches) and (launches.device == ABSENT).any():
        notes.append("some kernels name no device: they stand under device -1")
    properties = blocks.header.get("deviceProperties")
    return Trace(
        source_format=FORMAT,
        names=names.table(),
        launches=launches,
        copies=_copies(columns[COPY], columns[MEMSET], path),
        api_calls=_api_calls(columns[API], notes),
        ranges=_ranges(columns[RANGE]),
        copy_kinds=copy_kinds.table(),
        device_names=_device_names(properties if isinstance(properties, list) else []),
        notes=tuple(notes),
    )


def _sort_in(
    events: Any, columns: dict[int, _Columns], names: Names, copy_kinds: Names, categories: set[str], path: Path
) -> None:
    """Add a block's events to the columns of their kind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    category = pc.dictionary_encode(pc.fill_null(events.field("cat"), ""))
    spelt = [str(value) for value in category.dictionary.to_pylist()]
    categories.update(text for text in spelt if text)
    codes = np.array([CATEGORIES.get(text.lower(), OTHER) for text in spelt], dtype=np.int8)
    kinds = codes[category.indices.to_numpy()] if len(events) else codes
    complete = pc.fill_null(pc.equal(events.field("ph"), "X"), False).to_numpy(zero_copy_only=False)
    for kind, into in columns.items():
        rows = np.flatnonzero((kinds == kind) & complete)
        if not len(rows):
            continue
        some = events.take(pa.array(rows))
        for label in ("ts", "dur"):
            if some.field(label).null_count and kind in (KERNEL, COPY, MEMSET):
                raise TraceError(f"{path}: {some.field(label).null_count:,} kernel or copy events have no {label}")
        start, length = nanoseconds(some.field("ts"), path), nanoseconds(some.field("dur"), path)
        into.start.append(start)
        into.end.append(start + length)
        name = pc.dictionary_encode(pc.fill_null(some.field("name"), "[unnamed]"))
        spellings = name.dictionary.to_pylist()
        if kind in (COPY, MEMSET):
            ids = copy_kinds.ids(_copy_kind(text) for text in spellings)
        else:
            ids = names.ids(spellings)
        into.name.append(ids[name.indices.to_numpy()])
        into.thread.append(integers(some.field("tid")))
        arguments = some.field("args")
        for label, key in ARGUMENTS.items():
            into.values.setdefault(label, []).append(integers(pc.struct_field(arguments, [key])))
        if kind == KERNEL:
            into.grid.append(shapes(pc.struct_field(arguments, ["grid"])))
            into.block.append(shapes(pc.struct_field(arguments, ["block"])))


def _copy_kind(name: str) -> str:
    """Turn "Memcpy HtoD (Pageable -> Device)" into "host to device"."""
    if name.lower().startswith("memset"):
        return "memset"
    match = re.search(r"\b([HDPA])to([HDPA])\b", name)
    words = {"H": "host", "D": "device", "P": "peer", "A": "array"}
    return f"{words[match[1]]} to {words[match[2]]}" if match else "unknown"


def _launches(columns: _Columns, path: Path) -> Launches:
    start, end = _column(columns.start), _column(columns.end)
    check_times(start, end, "kernel events", path)
    node = _column(columns.values.get("graph_node", []))
    grid = np.concatenate(columns.grid) if columns.grid else None
    block = np.concatenate(columns.block) if columns.block else None
    return Launches(
        start=start,
        end=end,
        name=joined(columns.name, np.int32).astype(np.int32),
        device=device_ids(_column(columns.values.get("device", [])), path),
        stream=_column(columns.values.get("stream", [])),
        correlation=_column(columns.values.get("correlation", [])),
        graph_node=node if (node >= 0).any() else None,
        grid=_known(grid),
        block=_known(block),
        registers=_known(_column(columns.values.get("registers", [])).astype(np.int32)),
        shared_memory=_known(_column(columns.values.get("shared_memory", []))),
    )


def _copies(copies: _Columns, memsets: _Columns, path: Path) -> Copies | None:
    both = [part for part in (copies, memsets) if part.start]
    if not both:
        return None
    start, end = (_column([item for part in both for item in getattr(part, label)]) for label in ("start", "end"))
    check_times(start, end, "copy events", path)

    def value(label: str) -> Int64:
        return _column([item for part in both for item in part.values[label]])

    return Copies(
        start=start,
        end=end,
        device=device_ids(value("device"), path),
        stream=value("stream"),
        kind=np.concatenate([item for part in both for item in part.name]),
        bytes=_known(value("bytes")),
        correlation=value("correlation"),
    )


def _api_calls(columns: _Columns, notes: list[str]) -> ApiCalls | None:
    if not columns.start:
        notes.append("no API calls were recorded: the cause of gaps is unknown")
        return None
    start, end = _column(columns.start), _column(columns.end)
    keep = usable(start, end)
    return ApiCalls(
        start=start[keep],
        end=end[keep],
        name=np.concatenate(columns.name)[keep],
        thread=_column(columns.thread)[keep],
        correlation=_column(columns.values["correlation"])[keep],
    )


def _ranges(columns: _Columns) -> Ranges | None:
    if not columns.start:
        return None
    start, end = _column(columns.start), _column(columns.end)
    keep = usable(start, end)
    return Ranges(start[keep], end[keep], np.concatenate(columns.name)[keep], _column(columns.thread)[keep])


def _column(parts: list[Int64]) -> Int64:
    return joined(parts, np.int64).astype(np.int64, copy=False)


def _known(column: NDArray[Any] | None) -> NDArray[Any] | None:
    """None instead of a column in which nothing was recorded."""
    return None if column is None or not len(column) or (column < 0).all() else column


def _device_names(properties: list[Any]) -> dict[int, str]:
    rows = [row for row in properties if isinstance(row, dict) and row.get("name")]
    return {int(row["id"]): str(row["name"]) for row in rows if isinstance(row.get("id"), int)}
