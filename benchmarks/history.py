"""The commits of a checkout, as the commands need them."""

from __future__ import annotations

from pathlib import Path

from .attribution.git import GitError, run_git

ENGINE_PATHS = ("minfer", "kernels")
"""What can change a measurement; a commit that touches neither runs the same engine as its parent."""
OTHER_BACKEND_PATHS = {
    "numpy": ("minfer/backends/cuda", "minfer/kernels/nvrtc.py", "kernels/*.cu", "kernels/*.cuh", "kernels/*.md"),
    "cuda": (
        "minfer/backends/numpy.py", "minfer/backends/native.py", "minfer/backends/cpu_kernels.py",
        "minfer/backends/attend.py", "minfer/backends/dense.py", "minfer/backends/pool.py",
        "minfer/kernels/host.py", "kernels/cpu", "kernels/*.md",
    ),
}  # fmt: skip
"""By the backend that is measured: what of the engine it never runs. A commit that touches nothing else is left out too."""


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
    others = (path if "." in path else f"{path}/**" for path in OTHER_BACKEND_PATHS[backend])
    return [*ENGINE_PATHS, *(f":(exclude,glob){path}" for path in others)]
