"""Subjects and times of commits: from git where the checkout has them, else from ``results/commits.jsonl``."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

COMMITS_FILE = "commits.jsonl"
_FIELD, _END = "\x1f", "\x1e"


@dataclass(frozen=True, slots=True)
class Commit:
    hash: str
    time: str
    """ISO 8601."""
    subject: str
    body: str = ""

    @property
    def short(self) -> str:
        return self.hash[:8]


def read_commits(results: Path) -> tuple[dict[str, Commit], tuple[str, ...]]:
    """Every commit that git or the commits file knows, by hash, and what was wrong with the file, one sentence each.

    The same dictionary comes back as long as neither has changed.
    """
    path = results / COMMITS_FILE
    try:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
    except OSError:
        stamp = (0, 0)
    folder = next((parent for parent in (results, *results.parents) if parent.is_dir()), results)
    try:
        head, top = _git(folder, "rev-parse", "HEAD", "--show-toplevel").split("\n")[:2]
    except (OSError, subprocess.SubprocessError, ValueError):
        head, top = "", ""  # no git, or no repository: the commits file and the results themselves must do
    return _all_commits(path, stamp, top, head)


@lru_cache(maxsize=4)
def _all_commits(path: Path, stamp: tuple[int, int], top: str, head: str) -> tuple[dict[str, Commit], tuple[str, ...]]:
    known: dict[str, Commit] = {}
    problems: list[str] = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if stamp[0] else []
    for number, line in enumerate(lines, 1):
        try:
            item = json.loads(line)
            commit = Commit(str(item["commit"]), str(item["time"]), str(item["subject"]), str(item.get("body", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            problems.append(f"line {number} is not a commit; remove the line")
            continue
        known[commit.hash] = commit
    return (known | _log(top, head) if head else known), tuple(problems)


@lru_cache(maxsize=4)
def _log(top: str, head: str) -> dict[str, Commit]:
    """The whole log of a repository; ``head`` is there so that a new commit is a new key."""
    del head
    text = _git(Path(top), "log", "--all", f"--format=%H{_FIELD}%cI{_FIELD}%s{_FIELD}%b{_END}")
    commits: dict[str, Commit] = {}
    for entry in text.split(_END):
        fields = entry.strip("\n").split(_FIELD)
        if len(fields) == 4:
            commits[fields[0]] = Commit(fields[0], fields[1], fields[2], fields[3].strip())
    return commits


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True, timeout=60)
    return done.stdout.decode("utf-8", "replace")
