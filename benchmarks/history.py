"""The commits of a checkout, as the commands need them."""

from __future__ import annotations

from pathlib import Path

from .attribution.engine_paths import ENGINE_PATHS, NEVER_RUN
from .attribution.git import GitError, run_git


def commits_to_measure(root: Path, count: int, backend: str) -> list[str]:
    """HEAD and the newest commits before it that changed what ``backend`` runs, ``count`` in all, newest first."""
    try:
        head = run_git(root, "rev-parse", "--verify", "HEAD")
    except GitError as error:
        raise GitError(f"{root}: no commit to measure yet ({error}); commit first") from error
    found = run_git(root, "rev-list", f"--max-count={count}", "HEAD", "--", *_paths(backend)).split()
    newest_engine = found[:1]
    # HEAD's engine is that of the newest commit that touched it: measuring both would measure one engine twice.
    chosen = [head, *found[1:]] if newest_engine else [head]
    return chosen[:count]


def engine_commits(root: Path, revisions: str, backend: str) -> list[str]:
    """Commits of a range (``HEAD~20..HEAD``) that changed what ``backend`` runs, newest first. Raises GitError for none."""
    found = run_git(root, "rev-list", revisions, "--", *_paths(backend)).split()
    if not found:
        changed = f"changed what backend {backend} runs of {' or '.join(ENGINE_PATHS)}"
        raise GitError(f"{revisions}: no commit in it {changed}; name another range")
    return found


def uncommitted_changes(root: Path) -> list[str]:
    """Paths of the engine that differ from HEAD: they are not what is measured."""
    return run_git(root, "status", "--porcelain", "--", *ENGINE_PATHS).splitlines()


def _paths(backend: str) -> list[str]:
    """git's pathspecs of what ``backend`` runs."""
    others = (path if "." in path else f"{path}/**" for path in NEVER_RUN[backend])
    return [*ENGINE_PATHS, *(f":(exclude,glob){path}" for path in others)]
