"""What people decided about a change point: accepted, dismissed, or linked to where it is being worked on.

One small file a decision, ``results/changes/<digest>.toml``: decisions made on two branches never touch one file, so
git merges them (and no .json, which asv would take for a result). The key is machine, series and the commit that the
change was placed at.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from .errors import UserFacingError
from .whole_files import replacing

FORMAT = "minfer-change-triage"
FOLDER = "changes"
State = Literal["accepted", "dismissed", "linked"]
STATES: tuple[str, ...] = get_args(State)


class TriageError(UserFacingError):
    """A decision that cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Triage:
    machine: str
    series: str
    commit: str
    state: State
    """accepted: real and wanted; dismissed: no change of the code; linked: real, and ``link`` says where it is handled."""
    reason: str
    author: str
    date: str
    """ISO 8601 day or time."""
    link: str = ""
    format: str = FORMAT

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.machine, self.series, self.commit)

    @property
    def file_name(self) -> str:
        return hashlib.sha256("\0".join(self.key).encode()).hexdigest()[:16] + ".toml"

    @property
    def words(self) -> str:
        """``accepted by A on D: reason``."""
        link = f" ({self.link})" if self.link else ""
        return f"{self.state} by {self.author} on {self.date[:10]}: {self.reason}{link}"


def read_triage(results: Path) -> dict[tuple[str, str, str], Triage]:
    """All decisions below a results folder, by key. Raises TriageError naming the first bad file."""
    found: dict[tuple[str, str, str], Triage] = {}
    for path in sorted((results / FOLDER).glob("*.toml")):
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            if data.get("format") != FORMAT:
                raise ValueError(f"expected format = {FORMAT!r}")
            triage = Triage(**data)
        except (OSError, ValueError, TypeError) as error:
            raise TriageError(f"{path}: not a decision about a change ({error}); mend it or remove it") from error
        _check(triage, str(path))
        found[triage.key] = triage
    return found


def write_triage(results: Path, triage: Triage) -> Path:
    """Store one decision, in place of an earlier one of the same key. Returns the file. Raises TriageError."""
    _check(triage, "the decision")
    path = results / FOLDER / triage.file_name
    try:
        with replacing(path) as temporary:
            temporary.write_text(_toml(triage), encoding="utf-8")
    except OSError as error:
        raise TriageError(f"{path}: cannot be written ({error.strerror}); give a results folder that can be") from error
    return path


def remove_triage(results: Path, triage: Triage) -> None:
    """Take a decision back; nothing happens where there is none."""
    (results / FOLDER / triage.file_name).unlink(missing_ok=True)


def find_triage(
    decisions: dict[tuple[str, str, str], Triage], machine: str, series: str, commits: Iterable[str]
) -> Triage | None:
    """The decision about a change of this series at one of ``commits``, most likely first: more points move its place."""
    for commit in commits:
        for length in (len(commit), 12, 10, 8, 7):
            decision = decisions.get((machine, series, commit[:length]))
            if decision:
                return decision
    return None


def _toml(triage: Triage) -> str:
    """A JSON string is a TOML basic string, but for the one control character that JSON leaves bare."""
    lines = [
        f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for name, value in dataclasses.asdict(triage).items()
    ]
    return "\n".join(lines) + "\n"


def _check(triage: Triage, where: str) -> None:
    for field in dataclasses.fields(triage):
        if not isinstance(getattr(triage, field.name), str):
            raise TriageError(f"{where}: {field.name} must be text")
    if triage.state not in STATES:
        raise TriageError(f"{where}: state {triage.state!r}; give one of {', '.join(STATES)}")
    for name in ("series", "commit", "reason", "author", "date"):
        if not getattr(triage, name).strip():
            raise TriageError(f"{where}: {name} is empty; every decision says what it is about, why, by whom and when")
    if triage.state == "linked" and not triage.link.strip():
        raise TriageError(f"{where}: a linked change needs a link")
