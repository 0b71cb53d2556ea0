"""Our own capture on disk: every column of a ``Trace`` in one compressed .npz, with what is no column as JSON inside.

``save`` then ``load`` gives the same trace. A reader refuses versions that it does not know.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..events import (
    ApiCalls,
    BenchResult,
    Copies,
    KernelProfile,
    KernelSum,
    Launches,
    OperationLabel,
    Ranges,
    Trace,
    TraceError,
)
from ..whole_files import replacing
from .columns import check_times
from .source import GROWTH_CHECKED_AFTER, LARGEST_GROWTH

FORMAT = "minfer-capture"
VERSION = 1
ABOUT = "about.json"
_TABLES = {"launches": Launches, "copies": Copies, "api_calls": ApiCalls, "ranges": Ranges}
_LISTS = {"operations": OperationLabel, "sums": KernelSum, "profiles": KernelProfile, "bench_results": BenchResult}


def save(trace: Trace, path: Path) -> None:
    """Write the trace; a crash leaves either the old file or the new one."""
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "source_format": trace.source_format,
        "names": trace.names,
        "copy_kinds": trace.copy_kinds,
        "window_ns": trace.window_ns,
        "device_names": {str(key): value for key, value in trace.device_names.items()},
        "notes": trace.notes,
    }
    for label in _LISTS:
        about[label] = [dataclasses.asdict(row) for row in getattr(trace, label)]
    columns: dict[str, Any] = {}
    for label in _TABLES:
        table = getattr(trace, label)
        if table is not None:
            present = {item.name: getattr(table, item.name) for item in dataclasses.fields(table)}
            columns.update({f"{label}.{name}": value for name, value in present.items() if value is not None})
    with replacing(path) as temporary:
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **columns)
        with zipfile.ZipFile(temporary, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(ABOUT, json.dumps(about, separators=(",", ":")))


def load(path: Path) -> Trace:
    """Read what ``save`` wrote. Raises TraceError."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_size(archive, path)
            if ABOUT not in archive.namelist():
                raise TraceError(f"{path}: a zip archive that is no capture of ours; unpack it and name the trace inside")
            about = json.loads(archive.read(ABOUT))
        with np.load(path, allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in arrays.files if name != ABOUT}
    except TraceError:
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, KeyError, NotImplementedError) as error:
        raise TraceError(f"{path}: not a whole capture ({error}); capture it again") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT or about.get("version") != VERSION:
        seen = about.get("version") if isinstance(about, dict) else None
        raise TraceError(f"{path}: capture version {seen!r}, this checkout reads {VERSION}; update the checkout")
    try:
        trace = _trace(about, columns)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path}: a capture with wrong fields ({error}); capture it again") from error
    for label in ("launches", "copies"):
        table = getattr(trace, label)
        if table is not None:
            check_times(table.start, table.end, f"{label} rows", path)
    return trace


def _trace(about: dict[str, Any], columns: dict[str, Any]) -> Trace:
    fields: dict[str, Any] = {}
    for label, kind in _TABLES.items():
        own = {name.partition(".")[2]: value for name, value in columns.items() if name.startswith(f"{label}.")}
        if own:
            lengths = {len(value) for value in own.values()}
            if len(lengths) != 1:
                raise ValueError(f"columns of {label} differ in length")
            fields[label] = kind(**own)
    for label, row_kind in _LISTS.items():
        rows = [{key: _tupled(value) for key, value in row.items()} for row in about[label]]
        fields[label] = tuple(row_kind(**row) for row in rows)
    window = about["window_ns"]
    return Trace(
        source_format=str(about["source_format"]),
        names=tuple(about["names"]),
        copy_kinds=tuple(about["copy_kinds"]),
        window_ns=None if window is None else (int(window[0]), int(window[1])),
        device_names={int(key): str(value) for key, value in about["device_names"].items()},
        notes=tuple(about["notes"]),
        **fields,
    )


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check_size(archive: zipfile.ZipFile, path: Path) -> None:
    total, packed = (sum(getattr(item, size) for item in archive.infolist()) for size in ("file_size", "compress_size"))
    if total > GROWTH_CHECKED_AFTER and total > LARGEST_GROWTH * max(packed, 1):
        raise TraceError(f"{path}: {packed:,} bytes that claim to unpack to {total:,}: a decompression bomb, not a capture")
