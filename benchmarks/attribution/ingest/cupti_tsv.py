"""Tab separated CUPTI activity, as a few lines of C++ around cuptiActivityEnable write it.

First line: ``kind start_ns end_ns grid_x_or_bytes grid_y_or_copy_kind grid_z block_x correlation_id mangled_name``. A K row
is a kernel and has all nine fields. An M row is a copy and has five: its bytes stand under grid_x and its
CUpti_ActivityMemcpyKind under grid_y. There is one device and one stream, neither of which is written down.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..events import Copies, Int64, Launches, Trace, TraceError
from .columns import Names, check_times
from .nsys_sqlite import COPY_KINDS

FORMAT = "cupti tsv"
HEADER = "kind\tstart_ns\tend_ns\t"
KERNEL_FIELDS = ("kind", "start", "end", "grid_x", "grid_y", "grid_z", "block_x", "correlation", "name")
COPY_FIELDS = ("kind", "start", "end", "bytes", "copy_kind")


def read(text: str, path: Path) -> Trace:
    """Kernels and copies of device 0. Raises TraceError."""
    if not text.endswith("\n"):
        raise TraceError(f"{path}: the last line has no end; the file is cut, copy it again")
    kernels = _rows(text, "K", KERNEL_FIELDS, path)
    copies = _rows(text, "M", COPY_FIELDS, path)
    other = re.search(r"^(?!kind\t|K\t|M\t)(.{0,20})", text.rstrip("\n"), re.M)
    if other:
        raise TraceError(f"{path}: a line begins with {other[1]!r}; expected K or M and a tab")
    names = Names()
    start, end = _integers(kernels, "start"), _integers(kernels, "end")
    check_times(start, end, "kernel rows", path)
    encoded = kernels["name"].combine_chunks().dictionary_encode()
    ids = names.ids(str(text) for text in encoded.dictionary.to_pylist())
    count = len(start)
    grid = np.stack([_integers(kernels, f"grid_{axis}") for axis in "xyz"], axis=1).astype(np.int32)
    block = np.stack([_integers(kernels, "block_x"), np.full(count, -1), np.full(count, -1)], axis=1).astype(np.int32)
    launches = Launches(
        start=start,
        end=end,
        name=ids[encoded.indices.to_numpy()] if count else np.zeros(0, dtype=np.int32),
        device=np.zeros(count, dtype=np.int32),
        stream=np.zeros(count, dtype=np.int64),
        correlation=_integers(kernels, "correlation"),
        grid=grid,
        block=block,
    )
    return Trace(
        source_format=FORMAT,
        names=names.table(),
        launches=launches,
        copies=_copies(copies, path),
        copy_kinds=COPY_KINDS,
        notes=("no API calls in this format: the cause of gaps is unknown",),
    )


def _copies(rows: Any, path: Path) -> Copies | None:
    if not rows.num_rows:
        return None
    start, end, kind = (_integers(rows, label) for label in ("start", "end", "copy_kind"))
    check_times(start, end, "copy rows", path)
    return Copies(
        start=start,
        end=end,
        device=np.zeros(len(start), dtype=np.int32),
        stream=np.zeros(len(start), dtype=np.int64),
        kind=np.where((kind >= 0) & (kind < len(COPY_KINDS)), kind, 0).astype(np.int32),
        bytes=_integers(rows, "bytes"),
    )


def _rows(text: str, letter: str, fields: tuple[str, ...], path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    block = "\n".join(re.findall(rf"^{letter}\t.*$", text, re.M))
    types = {name: pa.string() if name in ("kind", "name") else pa.int64() for name in fields}
    if not block:
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    try:
        return pyarrow.csv.read_csv(
            io.BytesIO(block.encode()),
            read_options=pyarrow.csv.ReadOptions(column_names=list(fields)),
            parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        raise TraceError(
            f"{path}: a row of kind {letter} does not fit {len(fields)} fields ({error}); the file is cut"
        ) from error


def _integers(rows: Any, name: str) -> Int64:
    out: Int64 = rows[name].to_numpy()
    return out
