"""A commit's kernels are compiled by its own code, for the GPU that is there, and only where one will run them."""

from types import SimpleNamespace

import pytest

from benchmarks import checkout

BUILD = """
from pathlib import Path
def target_of(major, minor): return f"sm_{major}{minor}"
def build_all(targets): Path("built").write_text(" ".join(targets))
"""


@pytest.fixture
def commit(tmp_path, monkeypatch):
    folder = tmp_path / "minfer" / "kernels"
    folder.mkdir(parents=True)
    (folder / "build.py").write_text(BUILD)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    for name in ("MINFER_BACKEND", "MINFER_FROM_RECORDS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(checkout, "first_visible_device", lambda: SimpleNamespace(compute_capability=lambda: (9, 0)))
    return tmp_path


def built(folder):
    checkout.compile_kernels(folder)
    return (folder / "built").read_text() if (folder / "built").is_file() else None


def test_the_commits_own_code_compiles_for_this_gpu(commit):
    assert built(commit) == "sm_90"


@pytest.mark.parametrize("capability", [None, (9, 0)])
def test_without_a_gpu_or_with_one_that_does_not_tell_nothing_is_compiled(commit, monkeypatch, capability):
    device = SimpleNamespace(compute_capability=lambda: None) if capability else None
    monkeypatch.setattr(checkout, "first_visible_device", lambda: device)
    assert built(commit) is None


@pytest.mark.parametrize(("name", "value"), [("MINFER_BACKEND", "numpy"), ("MINFER_FROM_RECORDS", "1")])
def test_what_runs_on_no_gpu_needs_no_kernels(commit, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert built(commit) is None


def test_a_commit_before_the_kernels_has_none_and_one_that_does_not_compile_says_so_later(commit):
    (commit / "minfer" / "kernels" / "build.py").write_text("raise SystemExit('no compiler')")
    assert built(commit) is None
    (commit / "minfer" / "kernels" / "build.py").unlink()
    assert built(commit) is None
