"""The cache of one results folder: a manifest that names immutable Parquet files, replaced as a whole.

Readers take no lock: they hold a Snapshot, whose files stay on disk for a while after they are superseded. One writer at
a time, by a lock file, so that concurrent sessions of several processes never write twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .asv_files import SeriesKey
from .ingest import Batch, SourceRow
from .sources import Found, find_sources
from .tables import SCHEMAS, file_digest, read_table, table_of, write_table

FILES_A_BATCH = 4000
MOST_FILES_A_TABLE = 24
SUPERSEDED_SECONDS = 600
_LARGE = ("values", "walls", "parts", "records")
Progress = Callable[[int, int], None]


class DamagedCacheError(Exception):
    """A cache file that is not what the manifest says. The answer is to rebuild."""


@dataclass(frozen=True)
class Snapshot:
    """The cache at one moment."""

    folder: Path
    files: dict[str, tuple[str, ...]]
    """File names by table."""
    sources: pa.Table
    """Live sources only: a row of a large table whose source is not here belongs to an older content."""
    series: pa.Table
    key: str
    """Changes with the content."""

    def paths(self, table: str) -> list[str]:
        return [str(self.folder / name) for name in self.files.get(table, ())]

    def table(self, name: str) -> pa.Table:
        """A whole table with its live rows only."""
        rows = read_table(map(Path, self.paths(name)), name)
        return rows.filter(pc.is_in(rows["source"], self.sources["source"].combine_chunks()))


def cache_folder(results: Path) -> Path:
    """Beside the results (``.cache/dashboard/``), or in the user's temporary folder where that cannot be written."""
    name = f"{results.name}-{hashlib.sha256(str(results).encode()).hexdigest()[:10]}"
    beside = results.parent / ".cache" / "dashboard" / name
    try:
        beside.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=beside):
            return beside
    except OSError:  # a results folder that this user may only read
        elsewhere = Path(tempfile.gettempdir()) / f"minfer-dashboard-{os.getuid()}" / name
        elsewhere.mkdir(parents=True, exist_ok=True, mode=0o700)
        return elsewhere


class Store:
    """Keeps a Snapshot of a results folder up to date. One object serves all threads of a process."""

    def __init__(self, results: Path, folder: Path | None = None) -> None:
        self.results = results
        self.folder = folder or cache_folder(results)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._manifest: dict[str, Any] | None = None
        self._snapshot: Snapshot | None = None
        self._rows: dict[str, SourceRow] = {}
        self._threads = threading.Lock()

    def refresh(self, progress: Progress | None = None) -> Snapshot:
        """Bring the cache up to the folder's content: unchanged files cost one stat each."""
        with self._threads:
            found = find_sources(self.results)
            self._load()
            if self._snapshot is None or self._stale(found):
                with self._lock():
                    self._load()  # another process may have done the work while we waited
                    if self._snapshot is None or self._stale(found):
                        self._update(found, progress)
            assert self._snapshot is not None
            return self._snapshot

    def rebuild(self, progress: Progress | None = None) -> Snapshot:
        """Forget everything and read the folder again."""
        with self._threads, self._lock():
            (self.folder / "manifest.json").unlink(missing_ok=True)
            self._forget()
        return self.refresh(progress)

    def _load(self) -> None:
        """Take over the manifest on disk where it is another than ours; a damaged one counts as none."""
        try:
            manifest = json.loads((self.folder / "manifest.json").read_bytes())
            if manifest == self._manifest:
                return
            if manifest["reader"] != reader_fingerprint():
                raise DamagedCacheError("written by another version")
            seen = {tuple(entry) for entries in (self._manifest or {"files": {}})["files"].values() for entry in entries}
            for entries in manifest["files"].values():
                for name, digest in entries:
                    if (name, digest) not in seen and file_digest(self.folder / name) != digest:
                        raise DamagedCacheError(f"{name} is not what was written")
            self._take(manifest)
        except (OSError, ValueError, KeyError, TypeError, DamagedCacheError, pa.ArrowException):
            self._forget()

    def _forget(self) -> None:
        self._manifest, self._snapshot, self._rows = None, None, {}

    def _take(self, manifest: dict[str, Any]) -> None:
        files = {table: tuple(name for name, _ in entries) for table, entries in manifest["files"].items()}
        sources = read_table((self.folder / name for name in files["sources"]), "sources")
        series = read_table((self.folder / name for name in files["series"]), "series")
        columns = sources.to_pydict()
        self._rows = {path: dict(zip(columns, row, strict=True)) for path, row in _by_path(columns)}
        key = hashlib.sha256(json.dumps(manifest["files"], sort_keys=True).encode()).hexdigest()
        self._manifest = manifest
        self._snapshot = Snapshot(self.folder, files, sources, series, key)

    def _stale(self, found: dict[str, Found]) -> bool:
        return found.keys() != self._rows.keys() or bool(self._changed(found))

    def _changed(self, found: dict[str, Found]) -> list[Found]:
        rows = self._rows
        return [
            item
            for path, item in found.items()
            if (row := rows.get(path)) is None or row["mtime_ns"] != item.mtime_ns or row["size"] != item.size
        ]

    def _update(self, found: dict[str, Found], progress: Progress | None) -> None:
        changed = self._changed(found)
        kept = {path: row for path, row in self._rows.items() if path in found}
        series = self._series()
        files: dict[str, list[list[str]]] = {table: [] for table in SCHEMAS}
        if self._manifest is not None:
            files |= {table: list(self._manifest["files"].get(table, [])) for table in _LARGE}
            next_source = int(self._manifest["next_source"])
        else:
            next_source = 0
        for start in range(0, len(changed), FILES_A_BATCH):
            if progress is not None:
                progress(start, len(changed))
            batch = Batch(next_source, series)
            batch.read(self.results, changed[start : start + FILES_A_BATCH], self._rows)
            kept |= {str(row["path"]): row for row in batch.sources}
            next_source += len(batch.sources)
            for table, rows in batch.tables().items():
                files[table].append(list(write_table(self.folder, table, rows)))
        sources = table_of("sources", list(kept.values()))
        files["sources"] = [list(write_table(self.folder, "sources", sources))]
        files["series"] = [list(write_table(self.folder, "series", _series_table(series)))]
        for table in _LARGE:
            if len(files[table]) > (1 if self._manifest is None else MOST_FILES_A_TABLE):
                files[table] = self._compacted(table, files[table], sources)
        manifest = {"reader": reader_fingerprint(), "next_source": next_source, "files": files}
        _replace_text(self.folder / "manifest.json", json.dumps(manifest))
        self._take(manifest)
        self._sweep({name for entries in files.values() for name, _ in entries})

    def _series(self) -> dict[SeriesKey, int]:
        if self._snapshot is None:
            return {}
        rows = self._snapshot.series.to_pylist()
        return {SeriesKey(*(row[name] for name in SCHEMAS["series"].names[1:])): row["series"] for row in rows}

    def _compacted(self, table: str, entries: list[list[str]], sources: pa.Table) -> list[list[str]]:
        rows = read_table((self.folder / name for name, _ in entries), table)
        live = rows.filter(pc.is_in(rows["source"], sources["source"].combine_chunks()))
        return [list(write_table(self.folder, table, live))] if live.num_rows else []

    def _sweep(self, wanted: set[str]) -> None:
        """Remove files that no manifest names any more, once no session can still be reading them."""
        for path in self.folder.glob("*.parquet"):
            try:
                if path.name not in wanted and time.time() - path.stat().st_mtime > SUPERSEDED_SECONDS:
                    path.unlink()
            except FileNotFoundError:
                continue

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@cache
def reader_fingerprint() -> str:
    """Of the code that turns files into rows: another code means another cache."""
    here = Path(__file__).resolve().parent
    attribution = here.parents[1] / "benchmarks" / "attribution"
    code = [
        *sorted(here.glob("*.py")),
        here.parent / "record_rows.py",
        here.parent / "portrait.py",
        here.parent / "colours.py",
        *sorted(attribution.glob("*.py")),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in code)).hexdigest()


def _by_path(columns: dict[str, list[Any]]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    return zip(columns["path"], zip(*columns.values(), strict=True), strict=True)


def _series_table(series: dict[SeriesKey, int]) -> pa.Table:
    rows = [
        {"series": number, "machine": key.machine, "environment": key.environment, "benchmark": key.benchmark}
        | {"parameters": key.parameters, "version": key.version}
        for key, number in series.items()
    ]
    return table_of("series", rows)


def _replace_text(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)
