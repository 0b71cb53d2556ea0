"""Spans around operations become the launches of a trace whose wall closes."""

from dataclasses import dataclass

import numpy as np

from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.events import OperationLabel
from benchmarks.capture import spans
from benchmarks.capture.spans import SpanRecorder


@dataclass(frozen=True)
class Operation:
    name: str
    kernel_class: str
    macs: int


def label(operation):
    return OperationLabel(operation.name, operation.kernel_class, macs=operation.macs)


def recorded(monkeypatch, times, *operations):
    clock = iter(times)
    monkeypatch.setattr(spans.time, "perf_counter_ns", lambda: next(clock))
    recorder = SpanRecorder(label)
    with recorder:
        for operation in operations:
            recorder.begin(operation)
            recorder.end(operation)
    return recorder.trace()


def test_spans_are_launches_with_their_operations(monkeypatch):
    q, norm = Operation("attn_q", "q4_K GEMM", 1000), Operation("attn_norm", "norm", 0)
    trace = recorded(monkeypatch, [100, 110, 130, 135, 150, 160, 190, 200], q, norm, q)
    assert trace.source_format == "spans"
    assert trace.window_ns == (100, 200)
    np.testing.assert_array_equal(trace.launches.start, [110, 135, 160])
    np.testing.assert_array_equal(trace.launches.end, [130, 150, 190])
    assert [trace.operations[i].name for i in trace.launches.operation] == ["attn_q", "attn_norm", "attn_q"]
    part = decompose(trace)
    assert {c.name: (c.ns, c.launches, c.macs) for c in part.classes} == {"q4_K GEMM": (50, 2, 2000), "norm": (15, 1, 0)}
    assert sum(part.gap_ns.values()) == 100 - 65


def test_a_second_window_forgets_the_first(monkeypatch):
    operation = Operation("attn_q", "q4_K GEMM", 1)
    clock = iter(range(100))
    monkeypatch.setattr(spans.time, "perf_counter_ns", lambda: next(clock))
    recorder = SpanRecorder(label)
    for _ in range(2):
        with recorder:
            recorder.begin(operation)
            recorder.end(operation)
    assert len(recorder.trace().launches) == 1
