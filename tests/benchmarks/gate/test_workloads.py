"""The workloads in real worker processes: the prefill on a toy engine of the measured checkout."""

from types import SimpleNamespace

import pytest

from benchmarks.capture.conditions import Probe
from benchmarks.gate import inject, workloads
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


class Engine:
    """Passes of a set length; writes down what is asked of it."""

    backend, vocabulary = "cuda", 1000

    def __init__(self, seconds):
        self.seconds, self.log = seconds, []

    def prefill(self, tokens):
        self.log.append(len(tokens))
        return int(self.seconds(len(self.log)) * 1e9)


class Instrument:
    def __init__(self, log):
        self.log = log

    def passes(self, engine, tokens, count):
        self.log.append(f"trace {len(tokens)}")
        return [SimpleNamespace(classes=(SimpleNamespace(name="norm", ns=1000 + i),)) for i in range(count)]

    def named(self, engine, tokens, passes):
        self.log.append(f"name {len(tokens)}")
        return list(passes)


def taken(monkeypatch, engine, **fields):
    """What ``prefill`` gives, sample by sample, on an engine that stands for one on a GPU."""
    monkeypatch.setattr(inject, "SlowedEngine", lambda model, options, shares: engine)
    monkeypatch.setattr("benchmarks.capture.instrument.instrument_for", lambda engine: Instrument(engine.log))
    parts = {"copy_ns": 10, "gap_ns": {"queued": 20}}
    monkeypatch.setattr("benchmarks.attribution.decompose.decompose", lambda t: SimpleNamespace(classes=t.classes, **parts))
    request = Request(PREFILL, "", "head", 0, model="m.gguf", nt=(8, 16), **fields)
    sample = workloads.prefill(request)
    return [sample() for _ in range(request.warmups + request.samples)]


def test_every_wall_is_taken_before_the_first_trace_and_every_trace_before_operations_are_named(monkeypatch):
    engine = Engine(lambda number: 0.1)
    found = taken(monkeypatch, engine, samples=2, warmups=1)
    traced = engine.log.index("trace 8")
    assert set(engine.log[:traced]) == {8, 16}
    assert engine.log[traced:] == ["trace 8", "trace 16", "name 8", "name 16"]
    assert [one["prefill@16/norm"] for one in found] == pytest.approx([1000e-9, 1001e-9, 1002e-9])
    assert found[0]["prefill@8/gaps"] == pytest.approx(20e-9)


def test_a_short_pass_is_repeated_and_the_median_counts(monkeypatch):
    # One pass in five is late. The first three load and capture; then 0.3 s wake the clocks, and a sample takes 0.05 s.
    engine = Engine(lambda number: 0.03 if number % 5 == 0 else 0.01)
    found = taken(monkeypatch, engine, samples=3, warmups=0)
    assert [one["prefill@8/wall"] for one in found] == pytest.approx([0.01] * 3)
    passes = range(4, engine.log.index(16) + 1)
    assert 0.45 <= sum(engine.seconds(number) for number in passes) < 0.45 + 4 * 0.03


def test_a_long_pass_is_taken_once_a_sample(monkeypatch):
    engine = Engine(lambda number: float(number))
    engine.backend = "numpy"
    found = taken(monkeypatch, engine, samples=2, warmups=1)
    assert [one["prefill@8/wall"] for one in found] == [1.0, 2.0, 3.0]
    assert [one["prefill@16/wall"] for one in found] == [4.0, 5.0, 6.0]
