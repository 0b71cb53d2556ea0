"""Result files read into the cache's tables. What cannot be read becomes a problem of its source, never an end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.attribution.record_files import RecordError, record_from_json

from ..record_rows import RecordRows
from .asv_files import AsvFileError, SeriesKey, parse_asv
from .sources import Found, content_digest
from .tables import SCHEMAS, table_of

SourceRow = dict[str, object]


@dataclass
class Batch:
    """What some files hold, ready to be written."""

    first_source: int
    series: dict[SeriesKey, int]
    """Known series by number; grows."""
    sources: list[SourceRow] = field(default_factory=list)
    new_series: list[SeriesKey] = field(default_factory=list)
    _columns: dict[str, list[np.ndarray]] = field(default_factory=lambda: {name: [] for name in SCHEMAS["values"].names})
    _rows: RecordRows = field(default_factory=RecordRows)

    def read(self, folder: Path, files: Iterable[Found], known: dict[str, SourceRow]) -> None:
        """Read files. One whose content is what ``known`` says (by path) keeps its number and its rows."""
        for found in files:
            try:
                data = (folder / found.path).read_bytes()
            except OSError as error:
                self._note(found, "", "", 0, f"cannot be read: {error.strerror}")
                continue
            digest = content_digest(data)
            old = known.get(found.path)
            if old is not None and old["digest"] == digest:
                self.sources.append(old | {"size": found.size, "mtime_ns": found.mtime_ns})
            elif found.kind == "asv":
                self._asv(found, data, digest)
            else:
                self._records(found, data, digest)

    def tables(self) -> dict[str, pa.Table]:
        """The new rows of the large tables, without the empty ones."""
        tables = {}
        if self._columns["value"]:
            schema = SCHEMAS["values"]
            arrays = [
                pa.array(np.concatenate(self._columns[name]), schema.field(name).type, from_pandas=True)
                for name in schema.names
            ]
            tables["values"] = pa.Table.from_arrays(arrays, schema=schema)
        for name in ("walls", "parts", "records"):
            if rows := getattr(self._rows, name):
                tables[name] = table_of(name, rows)
        return tables

    def _note(self, found: Found, digest: str, commit: str, date_ms: int, problem: str | None) -> int:
        number = self.first_source + len(self.sources)
        self.sources.append(
            {"source": number, "path": found.path, "kind": found.kind, "machine": found.machine, "size": found.size}
            | {"mtime_ns": found.mtime_ns, "digest": digest, "commit": commit, "date_ms": date_ms, "problem": problem}
        )
        return number

    def _asv(self, found: Found, data: bytes, digest: str) -> None:
        try:
            read = parse_asv(data, found.machine)
        except AsvFileError as error:
            self._note(found, digest, "", 0, str(error))
            return
        number = self._note(found, digest, read.commit, read.date_ms, None)
        ids = np.empty(len(read.keys), np.int32)
        for place, key in enumerate(read.keys):
            known = self.series.get(key)
            if known is None:
                known = self.series[key] = len(self.series)
                self.new_series.append(key)
            ids[place] = known
        columns = self._columns
        columns["series"].append(ids)
        columns["source"].append(np.full(len(ids), number, np.int32))
        columns["value"].append(np.array(read.values, np.float64))
        columns["low"].append(np.array(read.low, np.float32))
        columns["high"].append(np.array(read.high, np.float32))
        columns["n"].append(np.array(read.samples, np.int32))

    def _records(self, found: Found, data: bytes, digest: str) -> None:
        number = self.first_source + len(self.sources)
        rows = RecordRows()
        commit, complaints = "", []
        # Each line is a record of its own: one that is damaged does not take the others with it.
        for line, text in enumerate(data.decode("utf-8", "replace").splitlines()):
            if not text.strip():
                continue
            try:
                record = record_from_json(text, f"{found.path}:{line + 1}")
            except RecordError as error:
                complaints.append(str(error))
                continue
            commit = record.commit
            rows.add(record, line)
        for row in (*rows.walls, *rows.parts, *rows.records):
            row["source"] = number
        self._rows.walls += rows.walls
        self._rows.parts += rows.parts
        self._rows.records += rows.records
        self._note(found, digest, commit, 0, "; ".join(complaints) or None)
