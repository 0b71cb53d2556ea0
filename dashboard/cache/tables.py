"""The cache's tables: their columns, and how rows become files. A file is written once and never changed."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_WALL_KEY = "source:i line:i place:i machine:s commit:s window:s engine:s backend:s nt:i"
_COLUMNS = {
    "sources": "source:i path:s kind:s machine:s size:l mtime_ns:l digest:s commit:s date_ms:l problem:s",
    "series": "series:i machine:s environment:s benchmark:s parameters:s version:s",
    "values": "series:i source:i value:d low:f high:f n:i",
    "walls": f"{_WALL_KEY} commit_time:s started:s model:s digest:s engine_version:s ubatch:i gates:s instrument:s driver:s "
    "best:b wall_ns:d low_ns:d high_ns:d ratio:d ratio_low:d ratio_high:d no_ratio:s samples:i quarantined:i "
    "traced_ns:l busy_ns:l gap_ns:l why_not:s failed_checks:s unapplied_checks:i",
    "records": "source:i line:i machine:s commit:s started:s slim:s",
    "parts": f"{_WALL_KEY} traced_ns:l busy_ns:l part:s ns:l launches:i macs:l bytes:l",
}
_TYPES = {"i": pa.int32(), "l": pa.int64(), "d": pa.float64(), "f": pa.float32(), "s": pa.string(), "b": pa.bool_()}
SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([(column.split(":")[0], _TYPES[column.split(":")[1]]) for column in columns.split()])
    for name, columns in _COLUMNS.items()
}
SORT = {
    "values": [("series", "ascending"), ("source", "ascending")],
    "parts": [("machine", "ascending"), ("engine", "ascending"), ("nt", "ascending"), ("source", "ascending")],
}
ROWS_A_GROUP = 50_000


def write_table(folder: Path, name: str, table: pa.Table) -> tuple[str, str]:
    """Write a sorted file named by its content. Returns its name and sha256; an equal file already there is kept."""
    if name in SORT:
        table = table.sort_by(SORT[name])
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".writing-", suffix=".parquet")
    os.close(descriptor)
    try:
        pq.write_table(table, temporary, row_group_size=ROWS_A_GROUP, compression="zstd", compression_level=1)
        digest = file_digest(Path(temporary))
        file = f"{name}-{digest[:20]}.parquet"
        Path(temporary).replace(folder / file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return file, digest


def read_table(paths: Iterable[Path], name: str) -> pa.Table:
    tables = [pq.read_table(path, schema=SCHEMAS[name]) for path in paths]
    return pa.concat_tables(tables) if tables else SCHEMAS[name].empty_table()


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def table_of(name: str, rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMAS[name])
