"""Git's answers: trailers, dirty files with odd names, hooks that must not run or lead astray."""

import pytest

from benchmarks.gate.exits import MachineUnfitError
from benchmarks.gate.repository import Repository, run_git
from benchmarks.gate.worktrees import checked_out

from . import histories


@pytest.fixture
def history(tmp_path):
    return histories.engine(tmp_path / "repository")


def test_acceptances_of_a_range_newest_first_and_folded_lines_joined(history):
    history.commit("one", {}, "One\n\nbody\n\nRegression-Accepted: first\n  reason goes on\nReviewed-by: x\n")
    history.commit("two", {}, "Two\n\nRegression-Accepted: second\n")
    history.commit("three", {}, "Three: mentions Regression-Accepted: not a trailer\n\nbody\n")
    accepted = Repository(history.root).accepted(history.commits["base"], history.commits["three"])
    assert [(one.commit, one.reason) for one in accepted] == [
        (history.commits["two"], "second"),
        (history.commits["one"], "first reason goes on"),
    ]


def test_uncommitted_names_are_exact_and_untracked_files_do_not_count(history):
    history.commit("odd", {"näme with space": "x"})
    (history.root / "näme with space").write_text("y")
    (history.root / "untracked").write_text("y")
    assert Repository(history.root).uncommitted() == ["näme with space"]


def test_a_hook_does_not_run_and_its_environment_does_not_lead_git_astray(history, tmp_path, monkeypatch):
    other = histories.engine(tmp_path / "other")
    hook = history.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "nowhere")
    repository = Repository(history.root)
    assert repository.root == history.root
    with checked_out(repository, {"base": history.commits["base"]}) as paths:
        assert (paths["base"] / "tinyengine" / "bench.py").is_file()
        kept = paths["base"]
    assert not kept.exists()


def test_a_checkout_that_fails_half_way_leaves_nothing(history, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with (
        pytest.raises(ValueError, match="git worktree"),
        checked_out(Repository(history.root), {"base": history.commits["base"], "head": "0" * 40}),
    ):
        pytest.fail("the body must not run")
    assert list((tmp_path / "tmp").iterdir()) == []
    monkeypatch.undo()
    assert history.worktrees() == 1


def test_a_disk_that_git_finds_full_makes_the_machine_unfit(tmp_path, monkeypatch):
    (tmp_path / "git").write_text("#!/bin/sh\necho 'fatal: cannot write: No space left on device' >&2\nexit 128\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(MachineUnfitError, match="git worktree: no space left on the disk"):
        run_git(tmp_path, "worktree", "add", "x")
