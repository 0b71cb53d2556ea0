"""What the screens ask of a results folder. The arithmetic is benchmarks.attribution's; nothing is computed twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import duckdb
import pandas as pd
import pyarrow as pa

from benchmarks.attribution.record import Record
from benchmarks.attribution.record_files import RecordError, record_from_json

from .cache import query
from .cache.store import Progress, Snapshot, Store
from .commits import Known, read_commits

T = TypeVar("T")
LOOK_AGAIN_SECONDS = 5.0
"""How long an answer stands before the folder is looked at again."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the results folder that could not be read, in one sentence with its place."""

    where: str
    what: str


class Results:
    """A results folder at one moment."""

    def __init__(self, folder: Path, snapshot: Snapshot, known: Known) -> None:
        self.folder = folder
        self.snapshot = snapshot
        self.known = known

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        columns = self.snapshot.sources.to_pydict()
        bad = [Problem(path, what) for path, what in zip(columns["path"], columns["problem"], strict=True) if what]
        return (*sorted(bad, key=lambda item: item.where), *(Problem("commits.jsonl", text) for text in self.known.problems))

    @cached_property
    def commits(self) -> pd.DataFrame:
        """Every measured commit in order of time: commit, time (ISO 8601), order (from 0), short, subject.

        A commit that git has forgotten (rebased away) keeps the place that its measurement's own date gives it.
        """
        sources = self.snapshot.sources.select(["commit", "date_ms"]).to_pandas()
        dates = sources[sources["commit"] != ""].groupby("commit")["date_ms"].max()
        said = dict(self.walls_undescribed[["commit", "commit_time"]].itertuples(index=False))
        rows = []
        for commit, date_ms in dates.items():
            known = self.known.by_hash.get(commit)
            when = known.time if known else said.get(commit) or pd.Timestamp(date_ms, unit="ms", tz="UTC").isoformat()
            rows.append(
                (commit, when, commit[:8], known.subject if known else "(subject not known: not in this repository)")
            )
        table = pd.DataFrame(rows, columns=["commit", "time", "short", "subject"])
        moments = pd.to_datetime(table["time"], utc=True, errors="coerce", format="ISO8601")
        table = table.assign(_moment=moments).sort_values(["_moment", "commit"], na_position="first").drop(columns="_moment")
        return table.reset_index(drop=True).reset_index(names="order")

    @cached_property
    def walls_undescribed(self) -> pd.DataFrame:
        return self.snapshot.table("walls").to_pandas()

    @cached_property
    def walls(self) -> pd.DataFrame:
        """One row a wall: see record_rows; with the commit's order, short, time and subject."""
        return self.walls_undescribed.merge(self.commits, on="commit", how="left")

    @cached_property
    def series(self) -> pd.DataFrame:
        """asv's series: series (number), machine, environment, benchmark, parameters, version."""
        return self.snapshot.series.to_pandas()

    @cached_property
    def order_of_sources(self) -> pd.DataFrame:
        """Columns source, order, commit: the place of each asv result's commit."""
        sources = self.snapshot.sources.select(["source", "commit", "kind"]).to_pandas()
        return sources[sources["kind"] == "asv"].merge(self.commits[["commit", "order"]], on="commit")[
            ["source", "order", "commit"]
        ]

    def parts(self, machine: str, nt: int) -> pd.DataFrame:
        """One row a part (class, copy, gap by cause) of the decompositions of one machine and nt, described like walls."""
        rows = query.parts_of(self.snapshot, machine, nt)
        return rows.merge(self.commits, on="commit", how="left")

    def records(self, machine: str, newest: int) -> list[Record]:
        """The newest records of a machine without their splits and symbols, oldest first."""
        rows = self.snapshot.table("records").to_pandas()
        rows = rows[rows["machine"] == machine].merge(self.commits[["commit", "order"]], on="commit")
        rows = rows.sort_values(["order", "started", "line"]).tail(newest)
        return [record_from_json(row.slim, f"{row.commit}.jsonl:{row.line + 1}") for row in rows.itertuples()]

    def values(self, series: Sequence[int]) -> pd.DataFrame:
        """Values of some asv series in order of commits: series, value, low, high, n and all columns of commits."""
        rows = query.values_of(self.snapshot, series)
        rows = rows.merge(self.order_of_sources[["source", "order"]], on="source").merge(self.commits, on="order")
        return rows.sort_values(["series", "order"], kind="stable").reset_index(drop=True)

    def points(self, series: Sequence[int]) -> pd.DataFrame:
        """Only series, order and value, in order of commits: for charts of many series."""
        rows = query.values_of(self.snapshot, series)[["series", "source", "value"]]
        rows = rows.merge(self.order_of_sources[["source", "order"]], on="source")
        return rows.sort_values(["series", "order"], kind="stable")

    def newest_values(self, back: int) -> pd.DataFrame:
        """Of each series measured lately its newest value and the one ``back`` commits before (NaN: there is none)."""
        order = self.order_of_sources[["source", "order"]]
        return query.newest_values(self.snapshot, order[order["order"] > order["order"].max() - 2 * back - 10], back)

    def heat(self, series: Sequence[int], bins: int) -> pd.DataFrame:
        return query.heat(self.snapshot, series, self.order_of_sources[["source", "order"]], bins)

    @cached_property
    def machines(self) -> list[str]:
        """Machines with records: those with a GPU (known by its driver) first, then by name."""
        with_gpu = self.walls.groupby("machine")["driver"].max()
        return sorted(with_gpu.index, key=lambda name: (not with_gpu[name], name))

    def record(self, machine: str, commit: str, line: int) -> Record:
        """One whole record. Raises RecordError."""
        path = self.folder / machine / "records" / f"{commit}.jsonl"
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                for number, text in enumerate(file):
                    if number == line:
                        return record_from_json(text, f"{path.name}:{line + 1}")
        except OSError as error:
            raise RecordError(f"{path.name}: {error.strerror}; reload the page") from error
        raise RecordError(f"{path.name}: no line {line + 1}; the file has changed, reload the page")


class Reader:
    """Keeps the newest Results of a folder; one object serves all sessions of a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = Store(folder)
        self._lock = threading.Lock()
        self._looked = 0.0
        self._results: Results | None = None

    def current(self, progress: Progress | None = None) -> Results:
        """The folder as it is; looked at again every few seconds. An unchanged folder gives the same object."""
        with self._lock:
            if self._results is not None and time.monotonic() - self._looked < LOOK_AGAIN_SECONDS:
                return self._results
            snapshot = self._store.refresh(progress)
            known = read_commits(self.folder)
            old = self._results
            if old is None or old.snapshot.key != snapshot.key or old.known is not known:
                self._results = Results(self.folder, snapshot, known)
            self._looked = time.monotonic()
            assert self._results is not None
            return self._results

    def ask(self, question: Callable[[Results], T]) -> T:
        """Ask; where a cache file turns out to be damaged or gone, rebuild the cache and ask once more."""
        try:
            return question(self.current())
        except (OSError, duckdb.Error, pa.ArrowException):
            with self._lock:
                self._store.rebuild()
                self._results = None
            return question(self.current())
