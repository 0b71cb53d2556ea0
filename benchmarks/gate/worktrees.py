"""Temporary checkouts of the two commits, removed whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..attribution.git import GitError
from .files import disk_errors
from .repository import Repository

PREFIX = "minfer-gate-"


@contextmanager
def checked_out(repository: Repository, commits: Mapping[str, str]) -> Iterator[dict[str, Path]]:
    """Each commit in a worktree of its own, named by its key. The keys should be of equal length: a longer path alone can
    shift a process's memory layout, and with it its speed.
    """
    remove_stale(repository)
    parent = Path(tempfile.gettempdir())
    with disk_errors("checkout", parent):
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    try:
        paths: dict[str, Path] = {}
        for name, commit in commits.items():
            paths[name] = folder / name
            repository.git("worktree", "add", "--detach", "--quiet", str(paths[name]), commit)
        yield paths
    finally:
        with uninterrupted():
            _remove(repository, folder)


def remove_stale(repository: Repository) -> None:
    """Remove what a killed run (kill -9, power) left behind: folders of ours whose process is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).split("-")[0]
        if pid.isdigit() and not _alive(int(pid)) and _belongs_to(folder, repository):
            _remove(repository, folder)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not stop the cleaning that the first one began."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old: dict[int, Any] = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _remove(repository: Repository, folder: Path) -> None:
    prune = False
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            repository.git("worktree", "remove", "--force", str(path))
        except GitError:
            # A checkout that broke off half way is no worktree that git can remove; with its folder gone, prune forgets it.
            prune = True
    shutil.rmtree(folder, ignore_errors=True)
    if prune:
        repository.git("worktree", "prune")


def _belongs_to(folder: Path, repository: Repository) -> bool:
    try:
        known = repository.git("worktree", "list", "--porcelain")
    except GitError:
        return False
    return f"worktree {folder.resolve()}/" in known or f"worktree {folder}/" in known


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
