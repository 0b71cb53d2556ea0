"""The commits worth measuring are HEAD and those before it that changed the engine."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import history
from benchmarks.attribution import engine_paths


class Repository:
    def __init__(self, folder):
        self.folder = folder
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments):
        author = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        command = ["git", "-C", str(self.folder), *author, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, path):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.read_text() + "x" if file.exists() else "x")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", path)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_commits_that_leave_the_engine_alone_are_passed_over(repository):
    first, second = repository.commit("minfer/a.py"), repository.commit("kernels/b.cu")
    repository.commit("docs/c.md")
    third = repository.commit("minfer/a.py")
    assert history.commits_to_measure(repository.folder, 10, "cuda") == [third, second, first]
    assert history.commits_to_measure(repository.folder, 2, "cuda") == [third, second]


def test_head_stands_for_the_engine_it_inherits(repository):
    first, _ = repository.commit("minfer/a.py"), repository.commit("minfer/a.py")
    head = repository.commit("docs/c.md")
    assert history.commits_to_measure(repository.folder, 5, "numpy") == [head, first]


def test_a_range_keeps_the_engines_commits_and_an_empty_one_is_refused(repository):
    first, second = repository.commit("minfer/a.py"), repository.commit("minfer/a.py")
    repository.commit("docs/c.md")
    assert history.engine_commits(repository.folder, f"{first}..HEAD", "numpy") == [second]
    with pytest.raises(history.GitError, match="no commit in it changed what backend numpy runs of minfer or kernels"):
        history.engine_commits(repository.folder, f"{second}..HEAD", "numpy")
    with pytest.raises(history.GitError, match="bad revision"):
        history.engine_commits(repository.folder, "nonsense..HEAD", "numpy")


def test_commits_that_touch_only_the_other_backend_are_passed_over(repository):
    both = repository.commit("minfer/model.py")
    gpu = [repository.commit(path) for path in ("minfer/backends/cuda/launch/a.py", "kernels/mmq.cu", "kernels/common.cuh")]
    cpu = [repository.commit(path) for path in ("kernels/cpu/mmv.c", "minfer/backends/native.py")]
    last = repository.commit("minfer/gates.py")
    assert history.commits_to_measure(repository.folder, 9, "numpy") == [last, *reversed(cpu), both]
    assert history.commits_to_measure(repository.folder, 9, "cuda") == [last, *reversed(gpu), both]
    assert history.engine_commits(repository.folder, f"{both}..HEAD", "numpy") == [last, *reversed(cpu)]


def test_what_a_backend_never_runs_is_still_where_it_was():
    root = Path(history.__file__).resolve().parents[1]
    for paths in engine_paths.NEVER_RUN.values():
        assert [path for path in paths if not list(root.glob(path))] == []


def test_a_repository_without_commits_says_so(repository):
    with pytest.raises(history.GitError, match="commit first"):
        history.commits_to_measure(repository.folder, 3, "numpy")


def test_only_the_engines_uncommitted_changes_count(repository):
    repository.commit("minfer/a.py")
    (repository.folder / "notes.txt").write_text("x")
    assert history.uncommitted_changes(repository.folder) == []
    (repository.folder / "minfer" / "a.py").write_text("changed")
    assert len(history.uncommitted_changes(repository.folder)) == 1
