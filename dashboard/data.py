"""What the screens ask of a results folder. The arithmetic is benchmarks.attribution's; nothing is computed twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from benchmarks.attribution.record import Record, RecordError, read_records, record_from_json

from .commits import Commit, read_commits
from .record_rows import RecordRows, Row


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the results folder that could not be read, in one sentence with its place."""

    where: str
    what: str


@dataclass(frozen=True)
class Results:
    folder: Path
    commits: dict[str, Commit]
    walls: pd.DataFrame
    """One row a wall: see record_rows; with the commit's order, short, time and subject."""
    parts: pd.DataFrame
    """One row a part of a decomposition, with the same."""
    problems: tuple[Problem, ...] = field(default=())

    @property
    def machines(self) -> list[str]:
        """Those with a GPU (known by its driver) first, then by name."""
        with_gpu = self.walls.groupby("machine")["driver"].max()
        return sorted(with_gpu.index, key=lambda name: (not with_gpu[name], name))

    def latest_commit(self, machine: str) -> str | None:
        """The newest measured commit of a machine by commit time, None where there is none."""
        rows = self.walls[self.walls["machine"] == machine]
        return None if rows.empty else str(rows.sort_values("order")["commit"].iloc[-1])

    def record(self, machine: str, commit: str, line: int) -> Record:
        """One whole record. Raises RecordError."""
        path = record_path(self.folder, machine, commit)
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file):
                if number == line:
                    return record_from_json(text, f"{path.name}:{line + 1}")
        raise RecordError(f"{path.name}: no line {line + 1}; the file has changed, reload the page")


def record_path(folder: Path, machine: str, commit: str) -> Path:
    return folder / machine / "records" / f"{commit}.jsonl"


def read_results(folder: Path) -> Results:
    """Read a results folder; an unreadable file becomes a Problem, never an end."""
    rows = RecordRows()
    problems: list[Problem] = []
    for path in sorted(folder.glob("*/records/*.jsonl")):
        try:
            records = read_records(path)
        except (RecordError, OSError, UnicodeDecodeError) as error:
            problems.append(Problem(str(path.relative_to(folder)), str(error)))
            continue
        for line, record in enumerate(records):
            rows.add(record, line)
    commits, complaints = read_commits(folder)
    problems += [Problem("commits.jsonl", complaint) for complaint in complaints]
    walls = _frame(rows.walls, _WALL_COLUMNS)
    parts = _frame(rows.parts, _PART_COLUMNS)
    described = _describe(walls, commits)
    walls = walls.merge(described, on="commit", how="left")
    parts = parts.merge(described, on="commit", how="left")
    return Results(folder, commits, walls, parts, tuple(problems))


_KEY = ["machine", "commit", "window", "engine", "backend", "nt", "line", "place"]
_WALL_COLUMNS = [
    *_KEY,
    "commit_time",
    "started",
    "model",
    "digest",
    "engine_version",
    "ubatch",
    "gates",
    "instrument",
    "driver",
    "wall_ns",
    "lowest_ns",
    "highest_ns",
    "samples",
    "quarantined",
    "traced_ns",
    "busy_ns",
    "gap_ns",
    "why_not",
    "failed_checks",
    "unapplied_checks",
    "notes",
]
_PART_COLUMNS = [*_KEY, "traced_ns", "busy_ns", "part", "ns", "launches", "macs", "bytes"]


def _frame(rows: list[Row], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns)


def _describe(walls: pd.DataFrame, commits: dict[str, Commit]) -> pd.DataFrame:
    """Commits in order of time with what is known of them. A commit that git has forgotten keeps its place and says so."""
    times = walls.drop_duplicates("commit")[["commit", "commit_time"]]
    table = [
        (
            commit,
            commit[:8],
            known.time if (known := commits.get(commit)) else when,
            known.subject if known else "(not in this repository)",
        )
        for commit, when in times.itertuples(index=False)
    ]
    described = pd.DataFrame(table, columns=["commit", "short", "time", "subject"])
    moments = pd.to_datetime(described["time"], utc=True, errors="coerce", format="ISO8601")
    order = moments.rank(method="first", na_option="top").astype(int) - 1 if len(described) else pd.Series(dtype=int)
    return described.assign(order=order)
