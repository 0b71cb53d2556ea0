"""Chrome JSON: exact times, every kernel counted, any layout of the text, blocks of any size."""

import gzip
import json
from decimal import Decimal

import numpy as np
import pytest

from benchmarks.attribution.events import TraceError
from benchmarks.attribution.ingest import json_stream, open_trace
from tests.benchmarks.attribution.ingest.builders import (
    CALLS,
    COPIES,
    KERNELS,
    RANGES,
    chrome_event,
    chrome_events,
    chrome_json,
)
from tests.shared_files import shared_file


def _rows(trace):
    launches = trace.launches
    rows = zip(
        launches.start, launches.end, launches.device, launches.stream, launches.correlation, launches.name, strict=True
    )
    return [(s, e, d, q, c, trace.names[n]) for s, e, d, q, c, n in rows]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_every_layout_gives_the_same_activity(tmp_path, indent, packed):
    trace = open_trace(chrome_json(tmp_path / "t", indent=indent, packed=packed))
    assert trace.source_format == "kineto json"
    assert _rows(trace) == list(KERNELS)
    assert trace.launches.grid.tolist() == [[10, 2, 1], [11, 2, 1], [12, 2, 1], [13, 2, 1]]
    assert trace.launches.registers.tolist() == [64] * 4
    assert trace.copies.start.tolist() == [row[0] for row in COPIES]
    assert [trace.copy_kinds[kind] for kind in trace.copies.kind] == ["host to device", "device to host"]
    assert trace.api_calls.correlation.tolist() == [row[3] for row in CALLS]
    assert [trace.names[name] for name in trace.ranges.name] == [row[3] for row in RANGES[:2]]
    assert trace.device_names == {0: "NVIDIA H200", 1: "NVIDIA H200"}


def test_a_bare_array_of_events_is_a_trace_too(tmp_path):
    (tmp_path / "t").write_text(json.dumps(chrome_events()))
    assert _rows(open_trace(tmp_path / "t")) == list(KERNELS)


def test_old_category_names_are_known(tmp_path):
    events = [
        dict(event, cat={"kernel": "Kernel", "gpu_memcpy": "Memcpy"}.get(event.get("cat"), "x")) for event in chrome_events()
    ]
    trace = open_trace(chrome_json(tmp_path / "t", events))
    assert len(trace.launches) == 4
    assert len(trace.copies) == 2


def test_times_are_exact_where_a_double_is_not(tmp_path):
    # Near 1.75e15 us a double has steps of 0.25 us; the file's decimals say otherwise.
    event = json.dumps(chrome_event("kernel", "k", 0, 0, device=0, stream=7)).replace(
        '"ts": 0.0, "dur": 0.0', '"ts": %s, "dur": %s'
    )
    (tmp_path / "t").write_text('{"traceEvents": [' + event % ("1751410836123456.789", "0.123") + "]}")
    trace = open_trace(tmp_path / "t")
    assert trace.launches.start.tolist() == [1_751_410_836_123_456_789]
    assert trace.launches.end.tolist() == [1_751_410_836_123_456_912]


@pytest.mark.parametrize(
    ("text", "ns"), [("5", 5000), ("5.1234567891234", 5123), ("1.5e1", 15000), ("0.00012345678901234567", 0)]
)
def test_any_spelling_of_a_number_is_read(tmp_path, text, ns):
    event = json.dumps(chrome_event("kernel", "k", 7000, 0, device=0, stream=7)).replace('"dur": 0.0', f'"dur": {text}')
    (tmp_path / "t").write_text('{"traceEvents": [' + event + "]}")
    trace = open_trace(tmp_path / "t")
    assert (trace.launches.end - trace.launches.start).tolist() == [ns]


def test_kernels_without_a_linked_call_count(tmp_path):
    events = [event for event in chrome_events() if event.get("cat") != "cuda_runtime"]
    trace = open_trace(chrome_json(tmp_path / "t", events))
    assert len(trace.launches) == 4
    assert trace.api_calls is None
    assert any("cause of gaps is unknown" in note for note in trace.notes)


@pytest.mark.parametrize("block", [64, 300, 1000])
@pytest.mark.parametrize("indent", [None, 1])
def test_blocks_cut_anywhere_lose_nothing(tmp_path, monkeypatch, block, indent):
    # Events hold lists of objects and strings with "}, {": places where a cut would be wrong.
    nested = chrome_event("cpu_op", "}, {", 5000, 10, shapes=[{"a": 1}, {"a": 2}], text="x}, {y")
    kernels = [chrome_event("kernel", f"k{i}", 10_000 + 100 * i, 50, device=0, stream=7, correlation=i) for i in range(60)]
    events = [event for kernel in kernels for event in (nested, kernel, nested)]
    path = chrome_json(tmp_path / "t", events, indent=indent)
    monkeypatch.setattr(json_stream, "BLOCK", block)
    trace = open_trace(path)
    assert trace.launches.correlation.tolist() == list(range(60))
    assert [trace.names[name] for name in trace.launches.name] == [f"k{i}" for i in range(60)]
    assert trace.device_names == {0: "NVIDIA H200", 1: "NVIDIA H200"}


def test_properties_after_the_events_are_found(tmp_path):
    text = json.dumps({"traceEvents": chrome_events(), "deviceProperties": [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}]})
    (tmp_path / "t").write_text(text)
    assert open_trace(tmp_path / "t").device_names == {0: "A", 1: "B"}


def _one(**changes):
    event = chrome_event("kernel", "k", 7000, 50, device=0, stream=7)
    event.update(changes)
    return event


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (_one(dur=-1), "end before they start"),
        (_one(ts=0, dur=0), "timestamp 0"),
        (_one(dur=float("nan")), "'NaN' is not a valid"),
        (_one(dur=None), "1 kernel or copy events have no dur"),
        (_one(ts=1e30), "does not fit 64 bits"),
        (_one(args=7), "value of the wrong kind"),
    ],
)
def test_impossible_events_are_refused_in_one_line(tmp_path, event, expected):
    with pytest.raises(TraceError) as error:
        open_trace(chrome_json(tmp_path / "t", [_one(), event]))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.95, 0.999])
def test_a_cut_file_is_refused(tmp_path, packed, share):
    path = chrome_json(tmp_path / "t", chrome_events() * 50, packed=packed)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(TraceError, match="cut"):
        open_trace(path)


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "{}", '{"traceEvents": 5}', '{"a": ', "[" * 100_000])
def test_foreign_json_is_refused(tmp_path, text):
    (tmp_path / "t").write_text(text)
    with pytest.raises(TraceError):
        open_trace(tmp_path / "t")


def test_no_kernel_is_said(tmp_path):
    trace = open_trace(chrome_json(tmp_path / "t", [chrome_event("cpu_op", "a", 5000, 1)]))
    assert len(trace.launches) == 0
    assert any("no GPU activity was recorded" in note for note in trace.notes)


def _brute(path, categories):
    """Intervals of a kineto file in ns by the slow and plain way: exact decimals, one event at a time."""
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    return [
        (int(event["ts"] * 1000), int(event["ts"] * 1000) + int(Decimal(event["dur"]) * 1000), event["args"]["correlation"])
        for event in events
        if event.get("ph") == "X" and event.get("cat") in categories
    ]


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("kineto_h100_Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 1465),
        ("kineto_inference_vllm_decode_full_graph_execution.json.gz", 425),
    ],
)
def test_real_traces_agree_with_plain_json(name, kernels):
    path = shared_file("traces", name)
    trace = open_trace(path)
    expected = _brute(path, {"kernel"})
    assert len(expected) == kernels
    columns = (trace.launches.start, trace.launches.end, trace.launches.correlation)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
    copies = _brute(path, {"gpu_memcpy"}) + _brute(path, {"gpu_memset"})
    assert (
        list(zip(trace.copies.start.tolist(), trace.copies.end.tolist(), trace.copies.correlation.tolist(), strict=True))
        == copies
    )


def test_graph_kernels_stay_apart_though_they_share_correlation_ids():
    trace = open_trace(shared_file("traces", "kineto_inference_vllm_decode_full_graph_execution.json.gz"))
    assert len(trace.launches) == 425
    assert len(np.unique(trace.launches.correlation)) == 5
