"""CUPTI's records as a trace, told by a CUPTI that is made up here."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.events import OperationLabel
from benchmarks.capture import cupti
from benchmarks.capture.cupti import CuptiCapture
from benchmarks.capture.cupti_records import (
    DRIVER,
    EXTERNAL_CORRELATION,
    KERNEL,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    RUNTIME,
    Records,
)
from benchmarks.capture.gpu_instrument import CuptiInstrument


class CuptiError(Exception):
    pass


class FakeCupti:
    """Calls the callbacks as CUPTI would: records come when it is flushed."""

    cuptiError = CuptiError  # noqa: N815 -- CUPTI's own spelling
    CallbackDomain = SimpleNamespace(DRIVER_API=1, RUNTIME_API=2)

    def __init__(self):
        self.enabled, self.stack, self.clock, self.pending = set(), [], 1000, []

    def activity_register_callbacks(self, requested, completed):
        assert requested()[0] > 0
        self.completed = completed

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.discard(kind)

    def activity_push_external_correlation_id(self, kind, index):
        self.stack.append(index)

    def activity_pop_external_correlation_id(self, kind):
        return self.stack.pop()

    def get_timestamp(self):
        return self.clock

    def get_callback_name(self, domain, callback):
        return {(1, 307): "cuLaunchKernel", (2, 211): "cudaLaunchKernel", (2, 41): "cudaMemcpyAsync"}[domain, callback]

    def activity_flush_all(self, flag):
        self.completed(self.pending)
        self.pending = []

    # What a program under test does:

    def launch(self, name, start, end, correlation, graph_node=0, runtime=False):
        kind, callback = (RUNTIME, 211) if runtime else (DRIVER, 307)
        self.pending.append(
            SimpleNamespace(
                kind=kind, start=start - 50, end=start - 40, cbid=callback, thread_id=7, correlation_id=correlation
            )
        )
        if self.stack:
            self.pending.append(
                SimpleNamespace(kind=EXTERNAL_CORRELATION, correlation_id=correlation, external_id=self.stack[-1])
            )
        sizes = dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_y", "block_z"), 1)
        self.pending.append(
            SimpleNamespace(
                kind=KERNEL, start=start, end=end, name=name, device_id=0, stream_id=13, correlation_id=correlation,
                graph_node_id=graph_node, block_x=128, registers_per_thread=40, static_shared_memory=16,
                dynamic_shared_memory=1024, **sizes,
            )
        )  # fmt: skip

    def copy(self, kind, start, end, correlation, size=64):
        self.pending.append(
            SimpleNamespace(
                kind=kind, start=start, end=end, device_id=0, stream_id=13, copy_kind=2, bytes=size,
                correlation_id=correlation,
            )
        )


def label(operation):
    return OperationLabel(operation, kernel_class="q4_K GEMM", macs=10)


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(cupti, "_registered", False)
    return FakeCupti()


def capture(fake, work):
    seen = CuptiCapture(label, fake)
    with seen:
        work(seen)
        fake.clock = 3000
    return seen.trace()


def prefill(fake):
    def work(observer):
        fake.launch("minfer_embedding_q4_K", 1100, 1200, 1)
        observer.begin("attn_q")
        fake.launch("minfer_dequantise_q4_K", 1300, 1400, 2)
        fake.launch("sm90_xmma_gemm", 1400, 1900, 3, runtime=True)
        observer.end("attn_q")
        observer.begin("attn_k")
        fake.launch("sm90_xmma_gemm", 2000, 2100, 4, runtime=True)
        observer.end("attn_k")
        fake.copy(MEMCPY, 2200, 2300, 5)
        fake.copy(MEMSET, 2310, 2320, 6)

    return work


def test_launches_know_their_operation_by_external_correlation(fake):
    trace = capture(fake, prefill(fake))
    assert [trace.names[i] for i in trace.launches.name] == [
        "minfer_embedding_q4_K", "minfer_dequantise_q4_K", "sm90_xmma_gemm", "sm90_xmma_gemm",
    ]  # fmt: skip
    assert trace.launches.operation.tolist() == [-1, 0, 0, 1]
    assert [operation.name for operation in trace.operations] == ["attn_q", "attn_k"]
    assert trace.launches.graph_node.tolist() == [-1] * 4
    assert trace.launches.shared_memory.tolist() == [1040] * 4
    assert trace.launches.block.tolist() == [[128, 1, 1]] * 4


def test_copies_memsets_and_api_calls_are_kept_apart(fake):
    trace = capture(fake, prefill(fake))
    assert [trace.copy_kinds[i] for i in trace.copies.kind] == ["device to host", "memset"]
    assert {trace.names[i] for i in trace.api_calls.name} == {"cuLaunchKernel", "cudaLaunchKernel"}
    assert trace.api_calls.correlation.tolist() == [1, 2, 3, 4]
    assert trace.window_ns == (1000, 3000)


def test_nodes_of_a_graph_keep_their_id_and_take_no_operation(fake):
    def work(observer):
        observer.begin("whole prefill")
        for node in (71, 72, 73):
            fake.launch("minfer_rope", 1000 + node, 1001 + node, 9, graph_node=node)
        observer.end("whole prefill")

    trace = capture(fake, work)
    assert trace.launches.graph_node.tolist() == [71, 72, 73]
    assert trace.launches.operation.tolist() == [-1, -1, -1]
    assert set(trace.launches.correlation.tolist()) == {9}


def test_the_trace_decomposes_and_closes(fake):
    result = decompose(capture(fake, prefill(fake)))
    assert result.wall_ns == 2000
    assert result.busy_ns == 800
    assert result.busy_ns + result.copy_ns + sum(result.gap_ns.values()) == 2000


def test_a_second_capture_starts_empty_and_leaves_nothing_enabled(fake):
    capture(fake, prefill(fake))
    assert not fake.enabled
    assert not fake.stack
    again = capture(fake, lambda observer: fake.launch("minfer_rope", 2000, 2100, 1))
    assert len(again.launches) == 1
    assert not again.operations


def test_what_was_seen_before_a_restart_is_forgotten(fake):
    def work(observer):
        prefill(fake)(observer)
        fake.clock = 5000
        observer.restart()
        observer.begin("attn_v")
        fake.launch("minfer_dequantise_q6_K", 5100, 5200, 9)
        observer.end("attn_v")
        fake.clock = 6000

    seen = CuptiCapture(label, fake)
    with seen:
        work(seen)
    trace = seen.trace()
    assert [operation.name for operation in trace.operations] == ["attn_v"]
    assert trace.launches.operation.tolist() == [0]
    assert trace.window_ns == (5000, 6000)
    assert len(trace.copies) == 0


def test_a_restart_gives_no_buffer_back(fake, monkeypatch):
    flushed = []
    seen = CuptiCapture(label, fake)
    with seen:
        monkeypatch.setattr(fake, "activity_flush_all", lambda flag: flushed.append(flag))
        seen.restart()
        assert flushed == []


def test_the_instrument_traces_the_second_of_two_calls(fake, monkeypatch):
    monkeypatch.setattr(cupti, "load_cupti", lambda: fake)
    calls = []

    def call():
        fake.launch("minfer_rope", 2000 + 100 * len(calls), 2050 + 100 * len(calls), 1 + len(calls))
        calls.append(len(calls))
        fake.clock += 1090
        return 80

    trace = CuptiInstrument().trace_call(call)
    assert calls == [0, 1]
    assert trace.launches.start.tolist() == [2100]
    # 80 of its 1090 ns: what the call timed itself, as an untraced sample is timed.
    assert trace.window_ns == (3100, 3180)


def test_records_outside_a_capture_are_dropped(fake):
    capture(fake, prefill(fake))
    fake.launch("minfer_rope", 5000, 5100, 1)
    fake.activity_flush_all(1)
    assert len(capture(fake, lambda observer: None).launches) == 0


def test_no_cupti_is_one_line_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupti", None)
    monkeypatch.setitem(sys.modules, "cupti.cupti", None)
    with pytest.raises(cupti.CuptiUnavailableError, match="pip install 'cupti-python"):
        CuptiCapture(label)


def test_another_profiler_in_the_way_is_named(fake):
    def refuse(kind):
        raise CuptiError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")

    fake.activity_enable = refuse
    seen = CuptiCapture(label, fake)
    with pytest.raises(cupti.CuptiUnavailableError, match=r"activity_enable failed .*end other profilers"), seen:
        pass


def test_an_empty_capture_has_columns_of_no_rows(fake):
    trace = capture(fake, lambda observer: None)
    assert len(trace.launches) == len(trace.copies) == len(trace.api_calls) == 0
    assert trace.launches.start.dtype == np.int64


def test_records_are_read_field_by_field_and_those_of_other_kinds_are_left_out():
    kernel = {
        "kind": KERNEL, "registers_per_thread": 40, "start": 5, "end": 9, "device_id": 0, "stream_id": 13, "grid_x": 1,
        "grid_y": 2, "grid_z": 3, "block_x": 4, "block_y": 5, "block_z": 6, "static_shared_memory": 7,
        "dynamic_shared_memory": 8, "correlation_id": 77, "name": "gemm", "graph_node_id": 0,
    }  # fmt: skip
    node = {**kernel, "name": "norm", "graph_node_id": 21}
    call = {"kind": DRIVER, "cbid": 307, "start": 1, "end": 2, "process_id": 3, "thread_id": 4, "correlation_id": 77}
    copy = {
        "kind": MEMCPY, "copy_kind": 2, "bytes": 64, "start": 10, "end": 11, "device_id": 0, "stream_id": 13,
        "correlation_id": 78,
    }  # fmt: skip
    between = {**copy, "kind": MEMCPY2, "copy_kind": 10}
    fill = {name: value for name, value in {**copy, "kind": MEMSET}.items() if name != "copy_kind"}
    label = {"kind": EXTERNAL_CORRELATION, "external_kind": 3, "external_id": 12, "correlation_id": 77}
    unknown = {"kind": 999, "start": 1}
    records = Records()
    records.take(
        SimpleNamespace(**one)
        for one in (kernel, node, call, {**call, "kind": RUNTIME}, copy, between, fill, label, unknown)
    )
    assert records == Records(
        kernels=[
            (5, 9, "gemm", 0, 13, 77, -1, 1, 2, 3, 4, 5, 6, 40, 15),
            (5, 9, "norm", 0, 13, 77, 21, 1, 2, 3, 4, 5, 6, 40, 15),
        ],
        copies=[
            (10, 11, 0, 13, "device to host", 64, 78),
            (10, 11, 0, 13, "peer to peer", 64, 78),
            (10, 11, 0, 13, "memset", 64, 78),
        ],
        api=[(1, 2, DRIVER, 307, 4, 77), (1, 2, RUNTIME, 307, 4, 77)],
        external={77: 12},
    )
