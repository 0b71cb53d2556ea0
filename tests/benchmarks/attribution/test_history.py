from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.attribution.git import GitError
from benchmarks.attribution.history import read_history


def git(repository: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(repository), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    body = "Say b\n\nA body of\n\ntwo parts.\nPredicts: wall -1 ms @5"
    for number, (path, message) in enumerate([("kernels/a.cu", "Add a"), ("docs/ü b.md", body), ("x", "Add x")]):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(str(number))
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", message)
    return tmp_path


def test_commits_come_newest_first_with_messages_and_paths(repository: Path):
    newest, middle, oldest = read_history(repository)
    assert (newest.subject, newest.paths, newest.message) == ("Add x", ("x",), "Add x")
    assert middle.paths == ("docs/ü b.md",)
    assert middle.message == "Say b\n\nA body of\n\ntwo parts.\nPredicts: wall -1 ms @5"
    assert (newest.parents, oldest.parents) == ((middle.id,), ())
    assert oldest.paths == ("kernels/a.cu",)
    assert len(newest.id) == 40
    assert newest.time.startswith("20")


def test_an_empty_commit_and_a_merge_have_the_paths_against_their_first_parent(repository: Path):
    git(repository, "checkout", "-q", "-b", "side", "HEAD~1")
    (repository / "side").write_text("s")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Add side")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    git(repository, "commit", "-q", "--allow-empty", "-m", "Nothing")
    nothing, merge, *rest = read_history(repository)
    assert (nothing.paths, merge.paths, len(merge.parents)) == ((), ("side",), 2)
    assert [commit.subject for commit in rest].count("Add side") == 1
    assert [commit.subject for commit in read_history(repository, "HEAD~1..HEAD")] == ["Nothing"]


def test_what_git_refuses_is_one_line(repository: Path, tmp_path_factory: pytest.TempPathFactory):
    with pytest.raises(GitError, match="git log: fatal: bad revision 'nowhere'"):
        read_history(repository, "nowhere")
    with pytest.raises(GitError, match="git log: fatal"):
        read_history(repository, "--output=stolen")
    assert not (repository / "stolen").exists()
    with pytest.raises(GitError, match="no such folder"):
        read_history(tmp_path_factory.mktemp("empty") / "none")
