"""``nsys stats --report cuda_gpu_trace`` (gputrace before 2023): one row a kernel or copy, as CSV, columns or a box."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..events import Copies, Int32, Launches, Trace, TraceError
from .columns import Names, check_times, device_ids
from .tables import Table, column_or, find_tables

FORMAT = "nsys cuda_gpu_trace"
HEADER = re.compile(r"^(?=.*\bStart ?\()(?=.*\bDuration ?\()(?=.*\bGrdX\b)(?=.*\bName\b).*$", re.M)
_MEMORY = re.compile(r"\[CUDA (?:Unified Memory )?(memcpy|memset)\s*([A-Za-z-]*)")
_DEVICE = re.compile(r"^(.*?)\s*\((\d+)\)\s*$")
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "": 10**6}
_SHORT = {"htod": "host to device", "dtoh": "device to host", "dtod": "device to device", "ptop": "peer to peer"}


def read(text: str, path: Path) -> Trace:
    """Kernels and copies. Raises TraceError."""
    tables = find_tables(text, HEADER, path)
    if len(tables) > 1:
        raise TraceError(f"{path}: {len(tables)} GPU traces in one file; split it, each has its own clock")
    table = tables[0]
    names, kinds = Names(), Names()
    start_name, length_name, name = table.find("Start"), table.find("Duration"), table.find("Name")
    if start_name is None or length_name is None or name is None:
        raise TraceError(f"{table.where}: a GPU trace without Start, Duration or Name; export it again")
    if not table.rows:
        notes = ("no row in the report: no GPU activity was recorded",)
        empty = np.zeros(0, dtype=np.int64)
        return Trace(
            FORMAT, launches=Launches(empty, empty, empty.astype(np.int32), empty.astype(np.int32), empty), notes=notes
        )
    start = table.times(start_name)
    end = start + table.times(length_name)
    check_times(start, end, "rows", path)
    device, device_names = _devices(table, path)
    stream, correlation = column_or(table, "Strm", -1), column_or(table, "CorrId", -1)
    spellings, which = _dictionary(table.columns[name])
    memory = np.array([text.startswith("[CUDA ") for text in spellings], dtype=bool)[which]
    kernel, copy = np.flatnonzero(~memory), np.flatnonzero(memory)
    ids = np.full(len(spellings), -1, dtype=np.int32)
    kernels = [i for i, text in enumerate(spellings) if not text.startswith("[CUDA ")]
    ids[kernels] = names.ids(spellings[i] for i in kernels)
    launches = Launches(
        start=start[kernel],
        end=end[kernel],
        name=ids[which][kernel],
        device=device[kernel],
        stream=stream[kernel],
        correlation=correlation[kernel],
        grid=_shape(table, "Grd", kernel),
        block=_shape(table, "Blk", kernel),
        registers=column_or(table, "Reg/Trd", -1).astype(np.int32)[kernel],
    )
    copies = None
    if len(copy):
        kind = kinds.ids(_copy_kind(text) for text in spellings)[which][copy]
        sizes = _sizes(table)
        copies = Copies(
            start[copy], end[copy], device[copy], stream[copy], kind,
            None if sizes is None else sizes[copy], correlation[copy],
        )  # fmt: skip
    return Trace(
        source_format=FORMAT,
        names=names.table(),
        launches=launches,
        copies=copies,
        copy_kinds=kinds.table(),
        device_names=device_names,
        notes=("no API calls in this report: the cause of gaps is unknown",),
    )


def _dictionary(column: Any) -> tuple[list[str], Any]:
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(pc.fill_null(column, ""))
    return [str(text) for text in encoded.dictionary.to_pylist()], encoded.indices.to_numpy()


def _devices(table: Table, path: Path) -> tuple[Int32, dict[int, str]]:
    """ "NVIDIA H100 (1)" is device 1; -1 where a row names none."""
    column = table.find("Device")
    if column is None:
        return np.full(table.rows, -1, dtype=np.int32), {}
    spellings, which = _dictionary(table.columns[column])
    matches = [_DEVICE.match(text) for text in spellings]
    numbers = [
        int(match[2]) if match else int(text) if text.isdecimal() else -1
        for match, text in zip(matches, spellings, strict=True)
    ]
    return device_ids(np.array([min(number, 1 << 40) for number in numbers], dtype=np.int64)[which], path), {
        int(match[2]): match[1] for match in matches if match
    }


def _shape(table: Table, stem: str, rows: Any) -> Int32:
    axes = [column_or(table, f"{stem}{axis}", -1)[rows] for axis in "XYZ"]
    return np.stack(axes, axis=1).astype(np.int32)


def _sizes(table: Table) -> Any:
    """Bytes of each copy, as exact as the report's decimal megabytes are."""
    column = table.find("Bytes")
    if column is None:
        return None
    unit = column.partition("(")[2].rstrip(") ").lower()
    values, present = table.integers(column, _BYTES.get(unit, 10**6))
    return np.where(present, values, -1)


def _copy_kind(name: str) -> str:
    match = _MEMORY.match(name)
    if match is None:
        return "unknown"
    if match[1] == "memset":
        return "memset"
    word = match[2].lower().strip("-")
    return _SHORT.get(word, word.replace("-", " ") or "unknown")
