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


def read_commits(results: Path) -> tuple[dict[str, Commit], list[str]]:
    """Every commit that git or the commits file knows, by hash, and what was wrong with the file, one sentence each."""
    known, problems = _from_file(results / COMMITS_FILE)
    return known | _from_git(results), problems


def _from_file(path: Path) -> tuple[dict[str, Commit], list[str]]:
    known: dict[str, Commit] = {}
    problems: list[str] = []
    if not path.is_file():
        return known, problems
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            item = json.loads(line)
            commit = Commit(str(item["commit"]), str(item["time"]), str(item["subject"]), str(item.get("body", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            problems.append(f"{path.name}:{number}: not a commit; remove the line")
            continue
        known[commit.hash] = commit
    return known, problems


def _from_git(results: Path) -> dict[str, Commit]:
    folder = next((parent for parent in (results, *results.parents) if parent.is_dir()), results)
    try:
        head = _git(folder, "rev-parse", "HEAD", "--show-toplevel").split()
        return _log(head[1], head[0])
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {}  # no git, or no repository: the commits file and the results themselves must do


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
