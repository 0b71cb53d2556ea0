"""Which records no longer speak of today's kernel mix, and why: a decomposition is a snapshot and expires.

It expires when a later commit changes a kernel, a gate, the model, the driver or the instrument (docs/method.md, "Expiry").
Paths say it of commits that were never measured; records say it of gates, model, driver and instrument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .engine_paths import is_run
from .history import Commit
from .record import Record, Wall

PATHS_THAT_EXPIRE = (
    ("kernels/", "kernel"),
    ("minfer/kernels/", "kernel"),
    ("minfer/backends/", "kernel"),
    ("minfer/quantisation.py", "kernel"),
    ("minfer/rotary.py", "kernel"),
    ("minfer/gates.py", "gate"),
    ("minfer/models/", "model"),
    ("minfer/model.py", "model"),
    ("minfer/forward.py", "model"),
    ("benchmarks/capture/", "instrument"),
    ("benchmarks/engine.py", "instrument"),
)
"""Path prefix and what a change below it touches. The first that fits counts."""
LISTED_COMMITS = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record expired: what changed ("kernel", "gate", "model", "driver", "instrument") and the evidence."""

    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class Expiry:
    commit: str
    reasons: tuple[Reason, ...]

    @property
    def expired(self) -> bool:
        return bool(self.reasons)


def expiries(records: Iterable[Record], history: Sequence[Commit], only: str | None = None) -> tuple[Expiry, ...]:
    """One answer a record, in order. ``history`` is newest first, as git gives it; records of the same machine class and
    model speak for each other, the newest of them for today. A commit outside the history has only its records to go by.
    ``only``: answers for records of this commit alone."""
    place = {commit.id: index for index, commit in enumerate(history)}
    listed = list(records)
    newest: dict[tuple[str, str], Record] = {}
    for record in listed:
        key = (record.machine.name, record.model.name)
        held = newest.get(key)
        if held is None or _age(record, place) <= _age(held, place):
            newest[key] = record
    return tuple(
        Expiry(
            record.commit,
            (
                *_from_paths(history[: place.get(record.commit, 0)], record.walls[0].backend if record.walls else ""),
                *_from_record(record, newest[(record.machine.name, record.model.name)]),
            ),
        )
        for record in listed
        if only is None or record.commit == only
    )


def _age(record: Record, place: dict[str, int]) -> tuple[int, int]:
    """Sorts the newest first: by place in the history, commits outside it last."""
    return (0, place[record.commit]) if record.commit in place else (1, 0)


def _from_paths(later: Sequence[Commit], backend: str) -> list[Reason]:
    by_kind: dict[str, list[str]] = {}
    for commit in reversed(later):
        run = (path for path in commit.paths if is_run(path, backend))
        for kind in dict.fromkeys(kind for path in run if (kind := _kind_of(path)) is not None):
            by_kind.setdefault(kind, []).append(f"{commit.id[:12]} {commit.subject}")
    reasons = []
    for kind, commits in by_kind.items():
        more = f"; and {len(commits) - LISTED_COMMITS} more" if len(commits) > LISTED_COMMITS else ""
        reasons.append(Reason(kind, "; ".join(commits[:LISTED_COMMITS]) + more))
    return reasons


def _kind_of(path: str) -> str | None:
    return next((kind for prefix, kind in PATHS_THAT_EXPIRE if path.startswith(prefix)), None)


def _from_record(record: Record, today: Record) -> list[Reason]:
    if record is today:
        return []
    reasons = []
    if record.model.digest != today.model.digest:
        reasons.append(Reason("model", f"weights {record.model.digest[:12]}, today {today.model.digest[:12]}"))
    if record.machine.driver != today.machine.driver:
        reasons.append(Reason("driver", f"{record.machine.driver}, today {today.machine.driver}"))
    instruments = [f"{item.instrument} {item.instrument_version}" for item in (record, today)]
    if instruments[0] != instruments[1]:
        reasons.append(Reason("instrument", f"{instruments[0]}, today {instruments[1]}"))
    for wall in record.walls:
        now = next((other for other in today.walls if _same_subject(wall, other)), None)
        if now is not None and now.gates != wall.gates:
            reasons.append(Reason("gate", f"{wall.engine} @{wall.nt}: {_gates(wall)}, today {_gates(now)}"))
    return reasons


def _same_subject(a: Wall, b: Wall) -> bool:
    return (a.engine, a.nt, a.backend, a.ubatch) == (b.engine, b.nt, b.backend, b.ubatch)


def _gates(wall: Wall) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(wall.gates.items())) or "none"
