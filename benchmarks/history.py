"""The commits of a checkout, as the commands need them."""

from __future__ import annotations

from pathlib import Path

from .attribution.git import GitError, run_git

ENGINE_PATHS = ("minfer", "kernels")
"""What can change a measurement; a commit that touches neither runs the same engine as its parent."""


def commits_to_measure(root: Path, count: int) -> list[str]:
    """HEAD and the newest commits before it that changed the engine, ``count`` in all, newest first."""
    try:
        head = run_git(root, "rev-parse", "--verify", "HEAD")
    except GitError as error:
        raise GitError(f"{root}: no commit to measure yet ({error}); commit first") from error
    found = run_git(root, "rev-list", f"--max-count={count}", "HEAD", "--", *ENGINE_PATHS).split()
    newest_engine = found[:1]
    # HEAD's engine is that of the newest commit that touched it: measuring both would measure one engine twice.
    chosen = [head, *found[1:]] if newest_engine else [head]
    return chosen[:count]


def engine_commits(root: Path, revisions: str) -> list[str]:
    """Commits of a range (``HEAD~20..HEAD``) that changed the engine, newest first. Raises GitError for an empty one."""
    found = run_git(root, "rev-list", revisions, "--", *ENGINE_PATHS).split()
    if not found:
        raise GitError(f"{revisions}: no commit in it changed {' or '.join(ENGINE_PATHS)}; name another range")
    return found


def uncommitted_changes(root: Path) -> list[str]:
    """Paths of the engine that differ from HEAD: they are not what is measured."""
    return run_git(root, "status", "--porcelain", "--", *ENGINE_PATHS).splitlines()
