"""The workloads in real worker processes: the prefill on a toy engine of the measured checkout."""

from types import SimpleNamespace

import pytest

from benchmarks.capture.conditions import Probe
from benchmarks.gate import inject
from benchmarks.gate.compare import PREFILL
from benchmarks.gate.exits import BenchmarkFailedError
from benchmarks.gate.protocol import Request, Status
from benchmarks.gate.replicate import run_arm
from benchmarks.gate.workloads import UNITS
from tests.benchmarks.toy_engine import engine_source


@pytest.fixture
def checkout(tmp_path):
    """A measured checkout with an engine, and with a ``benchmarks`` of its own that must not be used."""
    for package, source in (("minfer", engine_source()), ("benchmarks", "raise RuntimeError('the wrong benchmarks')")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(source)
    (tmp_path / "model.gguf").write_bytes(b"weights")
    return tmp_path


def run(checkout, **fields):
    request = Request(PREFILL, str(checkout), "head", 0, samples=2, model=str(checkout / "model.gguf"), nt=(8, 16), **fields)
    return run_arm(request, Probe(with_gpu=False), 60).report


def test_a_prefill_gives_its_wall_and_its_classes_at_each_nt(checkout):
    report = run(checkout)
    assert report.status is Status.MEASURED
    assert {"prefill@8/wall", "prefill@8/q4_K GEMM", "prefill@16/attention", "prefill@16/gaps"} <= set(report.metrics)
    assert all(len(values) == 2 for values in report.metrics.values())
    assert min(report.metrics["prefill@8/q4_K GEMM"]) >= 0.002


def test_a_commit_without_an_engine_lacks_the_api(checkout):
    (checkout / "minfer" / "__init__.py").write_text("")
    report = run(checkout)
    assert report.status is Status.LACKS_API
    assert "cannot load a model yet" in report.detail


def test_the_engine_is_told_its_backend_and_an_unknown_parameter_is_refused(checkout):
    told = "print('told', backend, ubatch); assert (backend, ubatch) == ('cuda', 128)"
    (checkout / "minfer" / "__init__.py").write_text(engine_source(on_load=told))
    assert run(checkout, parameters={"backend": "cuda", "ubatch": "128"}).status is Status.MEASURED
    with pytest.raises(BenchmarkFailedError, match="--set threads: the prefill knows backend and ubatch"):
        run(checkout, parameters={"threads": "2"})


def test_an_injected_slowdown_lengthens_its_class_alone(checkout):
    report = run(checkout, inject={"attention": 9.0})
    assert min(report.metrics["prefill@8/attention"]) >= 0.010
    assert min(report.metrics["prefill@8/wall"]) >= 0.012


def test_the_wait_is_the_share_of_the_time_that_the_operation_took(monkeypatch):
    clock = iter([100, 1100, 1100, 1250, 1399, 1400, 5000])
    monkeypatch.setattr(inject, "time", SimpleNamespace(perf_counter_ns=lambda: next(clock)))
    heard = []
    inner = SimpleNamespace(begin=lambda operation: heard.append("begin"), end=lambda operation: heard.append("end"))
    slowed = inject._Slowed({"norm": 0.3}, inner)
    operation = SimpleNamespace(kernel_class="norm")
    slowed.begin(operation)
    slowed.end(operation)
    assert next(clock) == 5000
    assert heard == ["begin", "end"]


def test_the_deterministic_units_resolve_one_percent():
    assert round(UNITS * 1.01) == UNITS + 1
