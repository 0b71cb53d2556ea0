"""Commits with their messages and changed paths, read with git."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .git import run_git

_FIELD, _RECORD = "\x1f", "\x1e"
_FORMAT = _RECORD + _FIELD.join(("%H", "%P", "%cI", "%s", "%B")) + _FIELD


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    parents: tuple[str, ...]
    time: str
    """Committer's date, ISO 8601."""
    subject: str
    message: str
    """Subject and body, as written."""
    paths: tuple[str, ...]
    """Paths that it changed against its first parent."""


def read_history(repository: Path, revisions: str = "HEAD", *, timeout_s: float = 60.0) -> tuple[Commit, ...]:
    """The commits of a revision or range, children before parents, merged branches included. Raises GitError."""
    command = ["log", "--topo-order", "-z", "--name-only", "--diff-merges=first-parent", f"--format={_FORMAT}"]
    output = run_git(repository, *command, "--end-of-options", revisions, "--", strip=False, timeout_s=timeout_s)
    return tuple(_commit(text) for text in output.split(_RECORD)[1:])


def _commit(text: str) -> Commit:
    identity, parents, time, subject, message, paths = text.split(_FIELD, 5)
    return Commit(
        id=identity,
        parents=tuple(parents.split()),
        time=time,
        subject=subject,
        message=message.rstrip("\n"),
        paths=tuple(path for path in paths.lstrip("\n").replace("\n", "\0").split("\0") if path),
    )
