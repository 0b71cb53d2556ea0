"""What is known of commits beside their measurements: from git where there is a repository, and from ``commits.jsonl``.

That optional file in the results folder (commit, time, subject, body, parents, paths; one object a line) lets results be
read without their repository, and keeps the subjects of commits that were rebased away.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.attribution.git import GitError, run_git
from benchmarks.attribution.history import Commit, read_history

COMMITS_FILE = "commits.jsonl"


@dataclass(frozen=True)
class Known:
    """All commits that anyone knows."""

    by_hash: dict[str, Commit]
    newest_first: tuple[Commit, ...]
    """One line of history, as git gives it; of a file its lines, the last first."""
    problems: tuple[str, ...] = ()

    @property
    def head(self) -> str | None:
        return self.newest_first[0].id if self.newest_first else None

    def after(self, commit: str) -> int | None:
        """How many commits came later; None for a commit outside the history."""
        return next((place for place, item in enumerate(self.newest_first) if item.id == commit), None)


def body_of(commit: Commit) -> str:
    return commit.message.removeprefix(commit.subject).strip()


def read_commits(results: Path) -> Known:
    """The same object comes back as long as neither git's HEAD nor the file has changed."""
    path = results / COMMITS_FILE
    try:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
    except OSError:
        stamp = (0, 0)
    folder = next((parent for parent in (results, *results.parents) if parent.is_dir()), results)
    try:
        head, top = run_git(folder, "rev-parse", "HEAD", "--show-toplevel", timeout_s=60).split("\n")[:2]
    except (GitError, ValueError):
        head, top = "", ""  # no git, or no repository: the commits file and the results themselves must do
    return _all_commits(path, stamp, top, head)


@lru_cache(maxsize=4)
def _all_commits(path: Path, stamp: tuple[int, int], top: str, head: str) -> Known:
    listed: list[Commit] = []
    problems: list[str] = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if stamp[0] else []
    for number, line in enumerate(lines, 1):
        try:
            listed.append(_from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError):
            problems.append(f"line {number} is not a commit; remove the line")
    by_hash = {commit.id: commit for commit in listed}
    # A results folder with a commits file of its own speaks for itself, even inside another repository.
    if listed or not head:
        return Known(by_hash, tuple(reversed(listed)), tuple(problems))
    try:
        newest_first = read_history(Path(top))
    except GitError as error:
        return Known(by_hash, (), (*problems, str(error)))
    return Known({commit.id: commit for commit in newest_first}, newest_first, tuple(problems))


def _from_json(item: dict[str, Any]) -> Commit:
    subject, body = str(item["subject"]), str(item.get("body", ""))
    parents, paths = item.get("parents", []), item.get("paths", [])
    message = f"{subject}\n\n{body}" if body else subject
    return Commit(str(item["commit"]), tuple(map(str, parents)), str(item["time"]), subject, message, tuple(map(str, paths)))
