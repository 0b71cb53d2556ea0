"""The static side of the gate: kernels' facts are handed in, the decision and the reports are the gate's own."""

import dataclasses

import pytest

import benchmarks.__main__ as entry
from benchmarks.attribution.acceptance import read_acceptances
from benchmarks.gate import compiled
from benchmarks.gate.exits import Exit
from benchmarks.static.collect import NoKernelsError
from benchmarks.static.facts import KernelFacts

from . import histories

FACTS = KernelFacts("gemm.cu", "q6_K_gemm", "sm_90a", 128, 0, 0, 0, 256, 16, 64, {"IMMA": 64}, 9.5, 4096)


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Two commits that do the same work; the second one's kernel source differs."""
    history = histories.engine(tmp_path / "repository")
    history.commit("kernel", {"kernels/gemm.cu": "// one\n"})
    history.commit("edited", {"kernels/gemm.cu": "// two\n"}, "Edit\n\nRegression-Accepted: spills, and is faster\n")
    history.git("tag", "accepted")
    history.git("commit", "-q", "--amend", "-m", "Edit")
    return history


def compiles_to(monkeypatch, before, after):
    answers = iter([before, after])

    def collect(checkout):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(compiled, "collect", collect)


def gate(history, *arguments):
    common = ["--repository", str(history.root), "--workload", histories.WORKLOAD, "--samples", "1", "--warmups", "0"]
    return entry.main(["gate", "--base", history.commits["kernel"], *common, "--foreign-limit", "1", *arguments])


def test_a_kernel_that_compiles_worse_is_red_though_no_time_moved(history, monkeypatch, capsys, tmp_path):
    compiles_to(monkeypatch, [FACTS], [dataclasses.replace(FACTS, spill_bytes=24, code_bytes=4000)])
    assert gate(history, "--junit", str(tmp_path / "v.xml")) == Exit.REGRESSED
    out = capsys.readouterr().out
    assert "REGRESSED: q6_K_gemm compiles worse (spill_bytes 0 -> 24 for sm_90a), 1 such changes in all" in out
    assert "next:  python -m benchmarks static --base" in out
    assert 'classname="compiled" name="q6_K_gemm sm_90a spill_bytes"' in (tmp_path / "v.xml").read_text()


def test_the_trailer_lets_it_pass_and_the_trade_is_kept(history, monkeypatch, capsys):
    for _ in range(2):
        compiles_to(monkeypatch, [FACTS], [dataclasses.replace(FACTS, registers=160)])
        assert gate(history, "--head", "accepted") == Exit.PASSED
    (stored,) = (history.root / "results").rglob("accepted.jsonl")
    (kept,) = read_acceptances(stored)
    assert (kept.reason, kept.metrics, kept.changes) == ("spills, and is faster", ("q6_K_gemm sm_90a registers",), (0.25,))
    assert "WORSE q6_K_gemm sm_90a registers 128 -> 160" in capsys.readouterr().out


def test_better_and_equal_pass(history, monkeypatch):
    compiles_to(monkeypatch, [FACTS], [dataclasses.replace(FACTS, registers=100)])
    assert gate(history) == Exit.PASSED


def test_a_base_that_cannot_be_compiled_is_said_and_a_head_that_cannot_fails(history, monkeypatch, capsys):
    compiles_to(monkeypatch, NoKernelsError("no compiler here"), [FACTS])
    assert gate(history) == Exit.PASSED
    assert "compiled kernels: not compared (base: no compiler here)" in capsys.readouterr().out
    compiles_to(monkeypatch, [FACTS], NoKernelsError("head: kernels do not compile: line 3"))
    assert gate(history) == Exit.FAILED
    assert "kernels do not compile: line 3" in capsys.readouterr().err


def test_nothing_is_compiled_where_no_source_differs_or_nobody_asks(history, monkeypatch, capsys):
    compiles_to(monkeypatch, AssertionError("must not compile"), AssertionError("must not compile"))
    assert gate(history, "--no-static") == Exit.PASSED
    history.commit("same kernels", {"README": "x\n"})
    history.commits["kernel"] = history.git("rev-parse", "HEAD^")
    assert gate(history) == Exit.PASSED
    assert "compiled kernels: not compared (no kernel source differs)" in capsys.readouterr().out
