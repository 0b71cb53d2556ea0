"""Commits with their messages and changed paths, read with git."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import UserFacingError

_FIELD, _RECORD = "\x1f", "\x1e"
_FORMAT = _RECORD + _FIELD.join(("%H", "%P", "%cI", "%s", "%B")) + _FIELD


class HistoryError(UserFacingError):
    """git could not tell the history. The text is the one line the user sees."""


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
    """The commits of a revision or range, children before parents, merged branches included. Raises HistoryError."""
    command = ["git", "-C", str(repository), "log", "--topo-order", "-z", "--name-only", "--diff-merges=first-parent"]
    command += [f"--format={_FORMAT}", "--end-of-options", revisions, "--"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False)
    except FileNotFoundError as error:
        raise HistoryError("git is not installed; install it to read the history") from error
    except subprocess.TimeoutExpired as error:
        raise HistoryError(f"{repository}: git log took over {timeout_s:.0f} s; name a shorter range") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise HistoryError(f"{repository}: git log {revisions} failed: {reason[0]}")
    return tuple(_commit(text) for text in done.stdout.decode(errors="replace").split(_RECORD)[1:])


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
