"""The hook, installed in a real clone that pushes to a real remote."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.gate import histories

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A pushed history with the hook in place; ``benchmarks`` stands in its checkout as it does in minfer's own."""
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    history = histories.engine(tmp_path / "clone")
    history.git("remote", "add", "origin", str(remote))
    history.git("push", "-q", "-u", "origin", "main")
    (history.root / "benchmarks").symlink_to(ROOT / "benchmarks")
    shutil.copy(ROOT / "ci" / "pre-push", history.root / ".git" / "hooks" / "pre-push")
    monkeypatch.setenv("MINFER_PYTHON", sys.executable)
    options = f"--repository {history.root} --workload {histories.WORKLOAD} --samples 1 --warmups 0 --foreign-limit 1"
    monkeypatch.setenv("MINFER_GATE_OPTIONS", options)
    (history.root / ".git" / "info" / "exclude").write_text("benchmarks\n")
    return history


def push(history, *arguments):
    command = ["git", "push", "-q", "origin", *arguments]
    return subprocess.run(command, cwd=history.root, capture_output=True, text=True, env=dict(os.environ), check=False)


def test_a_slower_commit_is_stopped_and_an_equal_one_is_pushed(clone):
    clone.commit("same", {"README": "x\n"})
    done = push(clone, "main")
    assert done.returncode == 0, done.stderr
    before = clone.git("ls-remote", "origin", "main")
    clone.commit("slow", histories.model(attention=460))
    done = push(clone, "main")
    assert done.returncode != 0
    assert "pre-push: the CI gate exited with 1" in done.stderr
    assert clone.git("ls-remote", "origin", "main") == before
    assert clone.worktrees() == 1


def test_a_tag_and_a_deleted_branch_measure_nothing(clone):
    clone.git("branch", "gone")
    clone.git("tag", "v1")
    assert push(clone, "gone", "v1").returncode == 0
    done = push(clone, "--delete", "gone")
    assert done.returncode == 0
    assert "gate:" not in done.stderr
