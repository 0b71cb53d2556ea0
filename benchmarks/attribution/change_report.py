"""The change points of many histories, each with what a reader needs to act: commit, size, direction, cause, decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .asv_results import Direction, commit_places, read_asv_results
from .history import Commit
from .record import ENGINE, Record
from .record_files import read_records
from .series_csv import CsvSeries
from .statistics.change_points import ChangePoint, SeriesError, find_changes, find_changes_in_many
from .statistics.composition import ShareChange, explain_share
from .triage import Triage, find_triage

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class History:
    """One series as it is examined; all sequences have one length."""

    machine: str
    """Empty for a CSV."""
    name: str
    values: Floats
    unit: str = ""
    direction: Direction = "lower"
    commits: tuple[str, ...] = ()
    """Empty where the points have none."""
    windows: tuple[str, ...] = ()
    """Empty where each point is its own measurement window."""
    positions: tuple[float, ...] = ()
    class_time: Floats | None = None
    """With ``wall``: ``values`` are the share class_time / wall."""
    wall: Floats | None = None

    @property
    def key(self) -> str:
        """What the JSON is keyed by."""
        return f"{self.machine}/{self.name}" if self.machine else self.name


@dataclass(frozen=True, slots=True)
class Change:
    """One change point of one history."""

    history: History
    point: ChangePoint
    share: ShareChange | None
    decision: Triage | None

    @property
    def commit(self) -> str:
        """The first commit after the change; empty where the points have none."""
        return self.history.commits[self.point.index] if self.history.commits else ""

    @property
    def rose(self) -> bool:
        return self.point.after > self.point.before

    @property
    def worse(self) -> bool:
        """Whether it went the wrong way: a share only where the class itself slowed."""
        if self.share:
            return self.share.cause == "class slowed"
        return self.history.direction != "neither" and self.rose == (self.history.direction == "lower")

    def to_json(self) -> dict[str, Any]:
        shift, point = self.point.shift, self.point
        interval = None if shift.low is None else [shift.low, shift.high]
        found: dict[str, Any] = {
            "index": point.index, "before": point.before, "after": point.after, "ratio": shift.ratio, "interval": interval,
            "between": [point.earliest, point.latest], "seen_at": point.seen_at, "worse": self.worse,
        }  # fmt: skip
        if self.commit:
            found["commit"] = self.commit
        if self.history.positions:
            found["position"] = self.history.positions[point.index]
        if self.share:
            found["cause"] = self.share.cause
            found["class_ratio"], found["others_ratio"] = self.share.class_shift.ratio, self.share.others_shift.ratio
        if self.decision:
            found["decision"] = {"state": self.decision.state, "reason": self.decision.reason, "link": self.decision.link}
        return found


def examine(
    histories: Sequence[History], decisions: dict[tuple[str, str, str], Triage] | None = None, workers: int = 1
) -> list[tuple[History, list[Change]]]:
    """The changes of each history, in order. Raises SeriesError."""
    plain = [number for number, history in enumerate(histories) if not history.windows]
    found: dict[int, tuple[ChangePoint, ...]] = dict(
        zip(plain, find_changes_in_many([histories[number].values for number in plain], workers), strict=True)
    )
    for number, history in enumerate(histories):
        if history.windows:
            found[number] = find_changes(history.values, history.windows)
    return [(history, _changes(history, found[number], decisions or {})) for number, history in enumerate(histories)]


def _changes(
    history: History, points: tuple[ChangePoint, ...], decisions: dict[tuple[str, str, str], Triage]
) -> list[Change]:
    edges = [0, *(point.index for point in points), len(history.values)]
    changes = []
    for number, point in enumerate(points):
        share = None
        if history.class_time is not None and history.wall is not None:
            share = explain_share(history.class_time, history.wall, point, edges[number], edges[number + 2])
        likely = sorted(range(point.earliest, point.latest + 1), key=lambda index: abs(index - point.index))
        commits = [history.commits[index] for index in likely] if history.commits else []
        changes.append(Change(history, point, share, find_triage(decisions, history.machine, history.name, commits)))
    return changes


def from_csv(series: Sequence[CsvSeries], direction: Direction) -> list[History]:
    """A history a series; where the CSV has a wall column, its share of the wall as well. Raises SeriesError."""
    found = []
    for one in series:
        labels: dict[str, Any] = {
            "commits": one.commits or (), "windows": one.windows or (), "positions": tuple(one.positions.tolist()),
        }  # fmt: skip
        found.append(History("", one.name, one.values, "", direction, **labels))
        if one.walls is not None:
            if (one.walls <= 0).any():
                raise SeriesError(f"series {one.name!r}: a wall of {one.walls.min():g}; expected times above 0")
            share = History("", f"{one.name} share", one.values / one.walls, "of wall", "neither", **labels)
            found.append(_with_parts(share, one.values, one.walls))
    return found


def _with_parts(share: History, class_time: Floats, wall: Floats) -> History:
    over = np.flatnonzero(class_time > wall)
    if len(over):
        raise SeriesError(
            f"series {share.name!r}: point {over[0]} takes {class_time[over[0]]:g} of a wall of {wall[over[0]]:g}; "
            f"expected at most the wall"
        )
    return History(
        share.machine, share.name, share.values, share.unit, share.direction, share.commits, share.windows,
        share.positions, class_time, wall,
    )  # fmt: skip


def from_results(results: Path, commits: Sequence[Commit]) -> list[History]:
    """asv's series, and from the decomposition records each class's share of the traced wall.

    ``commits`` come from git, newest first. Raises AsvResultError, RecordError.
    """
    order = [commit.id for commit in reversed(commits)]
    found = []
    for series in read_asv_results(results, order):
        values = np.array([point.value for point in series.points])
        ids = tuple(point.commit for point in series.points)
        found.append(History(series.machine, series.name, values, series.unit, series.direction, ids))
    for folder in sorted(path for path in results.glob("*/records") if path.is_dir()):
        records = [record for path in sorted(folder.glob("*.jsonl")) for record in read_records(path)]
        found.extend(_shares(folder.parent.name, records, order))
    return found


def _shares(machine: str, records: list[Record], order: Sequence[str]) -> list[History]:
    """One history a class, engine, backend and nt: its share of the traced wall, of which each window gives one point."""
    place = commit_places(order, {record.commit: _milliseconds(record.commit_time) for record in records})
    records = sorted(records, key=lambda record: (place[record.commit], record.window.started))
    parts: dict[str, list[tuple[str, str, int, int]]] = {}
    for record in records:
        seen: set[str] = set()
        for wall in record.walls:
            if wall.engine != ENGINE or wall.decomposition is None or wall.decomposition.wall_ns <= 0:
                continue
            for kernel_class in wall.decomposition.classes:
                name = f"share of wall({record.model.name}, {wall.backend}, nt {wall.nt}, {kernel_class.name})"
                if name not in seen:
                    seen.add(name)
                    point = (record.commit, record.window.id, kernel_class.ns, wall.decomposition.wall_ns)
                    parts.setdefault(name, []).append(point)
    found = []
    for name, points in sorted(parts.items()):
        ids, windows = tuple(point[0] for point in points), tuple(point[1] for point in points)
        time, wall_time = (np.array([point[column] for point in points], float) for column in (2, 3))
        # A window a commit is no grouping: nothing is gained by medians of single points.
        grouped = windows if len(set(windows)) < len(windows) else ()
        share = History(machine, name, time / wall_time, "of wall", "neither", ids, grouped)
        found.append(_with_parts(share, time, wall_time))
    return found


def _milliseconds(time: str) -> int:
    from datetime import datetime

    return int(datetime.fromisoformat(time).timestamp() * 1000)
