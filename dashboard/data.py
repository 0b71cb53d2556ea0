"""What the screens ask of a results folder. The arithmetic is benchmarks.attribution's; nothing is computed twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.attribution.record import Record
from benchmarks.attribution.record_files import RecordError, record_from_json

from .cache import query
from .cache.store import Progress, Snapshot, Store
from .commits import Known, read_commits
from .kept import Kept

T = TypeVar("T")
LOOK_AGAIN_SECONDS = 5.0
"""How long an answer stands before the folder is looked at again."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the results folder that could not be read, in one sentence with its place."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Stretches:
    """Series over equal stretches of commits; NaN where a stretch has no value."""

    series: tuple[int, ...]
    low: NDArray[np.float32]
    """[series, stretch]; so are ``middle`` and ``high``."""
    middle: NDArray[np.float32]
    high: NDArray[np.float32]
    first: pd.DataFrame
    """The first commit of each stretch, with the columns of commits."""
    commits: NDArray[np.int64]
    """How many commits each stretch holds."""


class Results:
    """A results folder at one moment."""

    def __init__(self, folder: Path, snapshot: Snapshot, known: Known) -> None:
        self.folder = folder
        self.snapshot = snapshot
        self.known = known
        self._stretches_kept: Kept[Stretches] = Kept(16)  # at most half a megabyte each
        self._records_kept: Kept[Record] = Kept(8)
        self._parts_kept: Kept[pd.DataFrame] = Kept(4)
        self._walls_kept: Kept[pd.DataFrame] = Kept(8)
        self._models_kept: Kept[dict[str, tuple[str, str]]] = Kept(32)
        self._newest_kept: Kept[pd.DataFrame] = Kept(1)

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
    def measured_series(self) -> frozenset[int]:
        """Numbers of asv's series that have a value anywhere."""
        return frozenset(query.measured_series(self.snapshot))

    @cached_property
    def order_of_sources(self) -> pd.DataFrame:
        """Columns source, machine, order, commit: the place of each asv result's commit."""
        sources = self.snapshot.sources.select(["source", "commit", "kind", "machine"]).to_pandas()
        return sources[sources["kind"] == "asv"].merge(self.commits[["commit", "order"]], on="commit")[
            ["source", "machine", "order", "commit"]
        ]

    def models(self, machine: str) -> dict[str, tuple[str, str]]:
        """Models measured on a machine: the first 12 digits of a digest to the digest and the name."""
        return self._models_kept.get(machine, lambda: self._models(machine))

    def _models(self, machine: str) -> dict[str, tuple[str, str]]:
        rows = self.walls[self.walls["machine"] == machine].drop_duplicates("digest")
        return {str(row.digest)[:12]: (str(row.digest), str(row.model)) for row in rows.itertuples()}

    def lengths(self, machine: str, digest: str) -> list[int]:
        """Prompt lengths (nt) measured of a model on a machine, the shortest first."""
        walls = self.walls
        return sorted(
            {int(nt) for nt in walls.loc[(walls["machine"] == machine) & (walls["digest"] == digest), "nt"].unique()}
        )

    def walls_of(self, machine: str, digest: str, nt: int) -> pd.DataFrame:
        """The walls of one machine, model and nt, all engines; to be read only."""
        walls = self.walls
        return self._walls_kept.get(
            (machine, digest, nt),
            lambda: walls[(walls["machine"] == machine) & (walls["digest"] == digest) & (walls["nt"] == nt)],
        )

    def parts_of_model(self, machine: str, digest: str, nt: int) -> pd.DataFrame:
        """``parts`` of one model; to be read only."""

        def of_model() -> pd.DataFrame:
            rows = self.parts(machine, nt)
            return rows[rows["window"].isin(self.walls_of(machine, digest, nt)["window"])]

        return self._parts_kept.get((machine, digest, nt), of_model)

    def parts(self, machine: str, nt: int) -> pd.DataFrame:
        """One row a part (class, copy, gap by cause) of the decompositions of one machine and nt, described like walls."""
        return self._parts_kept.get(
            (machine, nt), lambda: query.parts_of(self.snapshot, machine, nt).merge(self.commits, on="commit", how="left")
        )

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

    def newest_values(self, back: int) -> pd.DataFrame:
        """Of each series measured lately its newest value and the one ``back`` commits before (NaN: there is none)."""
        return self._newest_kept.get(back, lambda: self._newest_values(back))

    def _newest_values(self, back: int) -> pd.DataFrame:
        order = self.order_of_sources[["source", "order"]]
        return query.newest_values(self.snapshot, order[order["order"] > order["order"].max() - 2 * back - 10], back)

    def stretches(self, series: Sequence[int], most: int) -> Stretches:
        """Some asv series over at most ``most`` equal stretches of the commits that their machines measured.

        Answers are kept while these results stand: a click back costs nothing.
        """
        return self._stretches_kept.get((tuple(series), most), lambda: self._stretches(series, most))

    def _stretches(self, series: Sequence[int], most: int) -> Stretches:
        on = set(self.series.loc[self.series["series"].isin(series), "machine"])
        placed = self.order_of_sources[self.order_of_sources["machine"].isin(on)]
        orders, places = np.unique(placed["order"].to_numpy(), return_inverse=True)
        bins = min(most, len(orders))
        rows = query.stretches(self.snapshot, series, placed[["source"]].assign(order=places), bins)
        at = {number: row for row, number in enumerate(series)}
        cells = (np.array([at[int(number)] for number in rows["series"]], dtype=np.intp), rows["bin"].astype(np.intp))
        low, middle, high = (np.full((len(series), bins), np.nan, dtype=np.float32) for _ in range(3))
        low[cells], middle[cells], high[cells] = rows["low"], rows["middle"], rows["high"]
        # The first place that falls into each stretch, as DuckDB's floor(place * bins / count) cuts them.
        starts = -(-np.arange(bins + 1) * len(orders) // max(bins, 1))
        return Stretches(
            tuple(series), low, middle, high, self.commits.iloc[orders[starts[:-1]]].reset_index(drop=True), np.diff(starts)
        )

    @cached_property
    def machines(self) -> list[str]:
        """Machines with records: those with a GPU (known by its driver) first, then by name."""
        with_gpu = self.walls.groupby("machine")["driver"].max()
        return sorted(with_gpu.index, key=lambda name: (not with_gpu[name], name))

    def record(self, machine: str, commit: str, line: int) -> Record:
        """One whole record. Raises RecordError."""
        return self._records_kept.get((machine, commit, line), lambda: self._record(machine, commit, line))

    def _record(self, machine: str, commit: str, line: int) -> Record:
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


@lru_cache(maxsize=4)
def reader_of(folder: Path) -> Reader:
    """The process's one Reader of a folder."""
    return Reader(folder)
