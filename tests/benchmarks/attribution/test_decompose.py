"""The decomposition against a brute-force sweep, and each rule of it by example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.breakdown import MAX_SPLITS, OTHER, class_sums
from benchmarks.attribution.decompose import NoActivityError, decompose, decompose_devices, default_window, devices
from benchmarks.attribution.events import KernelSum, OperationLabel, Trace, TraceError
from benchmarks.attribution.record import Decomposition

from .builders import make_trace

GEMM, NORM = "void mul_mat_q<(ggml_type)12, 128, false>(char const*)", "rms_norm_f32"
_NAMES = (GEMM, NORM, "zork")
_CLASS = {GEMM: "q4_K GEMM", NORM: "norm", "zork": "unclassified"}


def closes(result: Decomposition) -> bool:
    return result.wall_ns == sum(item.ns for item in result.classes) + result.copy_ns + sum(result.gap_ns.values())


def classes_of(result: Decomposition) -> dict[str, int]:
    return {item.name: item.ns for item in result.classes}


_KERNELS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 20), st.sampled_from(_NAMES), st.integers(-1, 6)), min_size=1, max_size=12
)
_COPIES = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 20), st.integers(-1, 6)), max_size=6)
_CALLS = st.lists(st.tuples(st.integers(1, 70), st.integers(0, 6)), max_size=8)


@given(_KERNELS, _COPIES, _CALLS, st.integers(1, 40), st.integers(1, 50))
def test_it_agrees_with_a_sweep_over_single_nanoseconds(kernels, copies, calls, left, length):
    window = (left, left + length)
    launches = [(start, start + size, name, 0, 7, correlation) for start, size, name, correlation in kernels]
    moved = [(start, start + size, 0, correlation) for start, size, correlation in copies]
    trace = make_trace(launches, moved, calls)
    expected, copy_ns, gap_ns = _sweep(launches, moved, calls, window)
    if not any(_touches(start, end, window) for start, end, *_ in launches):
        with pytest.raises(NoActivityError):
            decompose(trace, window=window)
        return
    result = decompose(trace, window=window)
    assert closes(result)
    assert {name: ns for name, ns in classes_of(result).items() if ns} == expected
    assert result.busy_ns == sum(expected.values())
    assert result.copy_ns == copy_ns
    assert result.gap_ns == gap_ns


def _touches(start, end, window):
    return window[0] <= start <= window[1] if start == end else start < window[1] and end > window[0]


def _sweep(launches, copies, calls, window):
    """Each nanosecond on its own: who owns it, and why it is idle."""
    classes, copy_ns, gap_ns = {}, 0, {"host-late": 0, "queued": 0, "unknown": 0}
    everything = [(start, end, correlation) for start, end, _, _, _, correlation in launches]
    everything += [(start, end, correlation) for start, end, _, correlation in copies]
    call_of = {}
    for start, correlation in (call for call in calls if call[1] > 0):
        call_of[correlation] = min(start, call_of.get(correlation, start))
    for now in range(*window):
        running = [row for row in launches if row[0] <= now < row[1]]
        if running:
            name = _CLASS[min(running, key=lambda row: row[0])[2]]
            classes[name] = classes.get(name, 0) + 1
        elif any(start <= now < end for start, end, _ in everything):
            copy_ns += 1
        else:
            gap_ns[_cause(everything, call_of, now, window)] += 1
    return classes, copy_ns, gap_ns


def _cause(everything, call_of, now, window):
    # A row that is empty, or empty once cut to the window, does not end a wait; it may coincide with the row that does.
    solid = [row for row in everything if min(row[1], window[1]) > max(row[0], window[0])]
    later = [start for start, _, _ in solid if start > now]
    if not later or min(later) >= window[1]:
        return "unknown"
    ends = min(later)
    calls = [call_of[c] for start, end, c in everything if start == ends and c in call_of]
    call = min(calls, default=None)
    if call is None or call > ends:
        return "unknown"
    earlier = [end for start, end, _ in everything if end <= now and (start < window[0] or start < end)]
    return "host-late" if not earlier or call > max(earlier) else "queued"


def test_overlap_is_counted_once_and_belongs_to_the_earliest_started():
    result = decompose(make_trace([(10, 20, GEMM, 0, 1), (15, 30, NORM, 0, 2)]))
    assert classes_of(result) == {"q4_K GEMM": 10, "norm": 10}
    assert (result.busy_ns, result.summed_ns, result.span_ns) == (20, 25, 20)


def test_only_the_part_of_a_copy_that_no_kernel_covers_is_copy_time():
    result = decompose(make_trace([(10, 20, GEMM)], [(15, 40), (35, 45)]))
    assert (result.copy_ns, result.copies_summed_ns, result.wall_ns) == (25, 35, 35)


def test_no_copy_column_means_not_known_rather_than_none_made():
    assert decompose(make_trace([(10, 20, GEMM)])).copies_summed_ns is None


def test_causes_of_gaps():
    kernels = [(100, 110, GEMM, 0, 7, 1), (120, 130, GEMM, 0, 7, 2), (140, 150, GEMM, 0, 7, 3), (160, 170, GEMM, 0, 7, 4)]
    trace = make_trace(kernels, calls=[(90, 1), (105, 2), (135, 3)], window=(80, 175))
    result = decompose(trace)
    assert result.gap_ns == {"host-late": 20 + 10, "queued": 10, "unknown": 10 + 5}
    assert closes(result)


def test_nodes_of_one_graph_share_their_call_and_wait_as_queued():
    trace = make_trace([(100, 110, GEMM, 0, 7, 5), (112, 120, GEMM, 0, 7, 5), (123, 130, NORM, 0, 7, 5)], calls=[(50, 5)])
    assert decompose(trace).gap_ns == {"host-late": 0, "queued": 5, "unknown": 0}


def test_a_gap_at_the_windows_start_is_judged_by_when_the_device_went_idle():
    trace = make_trace([(100, 110, GEMM, 0, 7, 1), (140, 150, GEMM, 0, 7, 2)], calls=[(90, 1), (115, 2)])
    assert decompose(trace, window=(120, 150)).gap_ns["host-late"] == 20


def test_launches_without_a_linked_call_are_still_time():
    trace = make_trace([(100, 110, GEMM, 0, 7, 1), (110, 130, NORM, 0, 7, 99)], calls=[(90, 1)])
    assert decompose(trace).busy_ns == 30


def test_several_devices_need_a_choice_and_each_has_its_own_wall():
    trace = make_trace([(10, 20, GEMM, 0), (12, 32, NORM, 1)], [(40, 50, 2)])
    assert devices(trace) == (0, 1, 2)
    with pytest.raises(TraceError, match="devices 0, 1, 2; name one"):
        decompose(trace)
    found = decompose_devices(trace)
    assert {device: item.wall_ns for device, item in found.items()} == {0: 10, 1: 20}
    assert default_window(trace, 1) == (12, 32)


def test_no_kernel_record_is_not_an_idle_device():
    for trace in (make_trace(), make_trace([], [(5, 9)])):
        with pytest.raises(NoActivityError, match="not an idle device"):
            decompose(trace)
        with pytest.raises(NoActivityError):
            decompose_devices(trace)
    with pytest.raises(NoActivityError, match=r"in 50\.\.60 ns"):
        decompose(make_trace([(10, 20, GEMM)]), window=(50, 60))


def test_timestamps_of_zero_are_left_out_and_counted():
    result = decompose(make_trace([(0, 0, GEMM), (0, 30, GEMM), (10, 20, NORM)], [(0, 15)]))
    assert (result.not_collected, classes_of(result), result.wall_ns) == (3, {"norm": 10}, 10)
    with pytest.raises(NoActivityError):
        decompose(make_trace([(0, 0, GEMM)]))


def test_impossible_times_are_refused():
    with pytest.raises(TraceError, match="1 of 2 launches end before they start"):
        decompose(make_trace([(10, 20, GEMM), (30, 25, NORM)]))
    with pytest.raises(TraceError, match="1 of 1 copies end"):
        decompose(make_trace([(10, 20, GEMM)], [(9, 8)]))
    with pytest.raises(TraceError, match="empty or reversed"):
        decompose(make_trace([(10, 20, GEMM)]), window=(20, 20))


def test_a_trace_of_sums_has_no_wall_but_has_classes():
    rows = (KernelSum(GEMM, 3, 900), KernelSum(NORM, 2, 100), KernelSum(GEMM + " ", 1, 50))
    trace = Trace(source_format="nsys kern_sum csv", sums=rows)
    with pytest.raises(TraceError, match="wall is unknown"):
        decompose(trace)
    assert [(item.name, item.ns, item.launches) for item in class_sums(rows)] == [("q4_K GEMM", 950, 4), ("norm", 100, 2)]


def _label(name, kernel_class, macs=None, layer=None, n=8):
    return OperationLabel(name, kernel_class, layer=layer, m=4, n=n, k=16, quantisation="q4_K", macs=macs, bytes=10)


def test_the_label_names_a_generic_gemm_and_work_is_counted_once():
    attn_q = [_label("attn_q", "q4_K GEMM", 512, layer) for layer in (0, 1)]
    labels = (*attn_q, _label("ffn_up", "q4_K GEMM", 99, n=9))
    kernels = [
        (10, 14, "minfer_dequantise_q4_K", 0, 7, 1, 0),
        (14, 30, "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", 0, 7, 2, 0),
        (30, 40, "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", 0, 7, 3, 1),
        (40, 43, "splitKreduce_kernel", 0, 7, 4, 1),
        (43, 60, "zork", 0, 7, 5, 2),
        (60, 65, "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", 0, 7, 6, -1),
    ]
    result = decompose(make_trace(kernels, operations=labels))
    by_name = {item.name: item for item in result.classes}
    assert classes_of(result) == {"q4_K GEMM": 46, "weight dequantise": 4, "f16 GEMM": 5}
    gemm = by_name["q4_K GEMM"]
    assert (gemm.macs, gemm.bytes, gemm.launches) == (512 + 512 + 99, 30, 4)
    assert by_name["weight dequantise"].macs is None
    assert [(s.operation, s.ns, s.launches, s.macs, s.layer) for s in gemm.splits] == [
        ("attn_q", 26, 2, 1024, None),
        ("ffn_up", 17, 1, 99, None),
        ("attn_q, split-k and epilogue", 3, 1, None, None),
    ]
    assert result.unclassified == ()


def test_without_labels_the_grid_splits_a_symbol():
    trace = make_trace([(10, 20, GEMM), (20, 25, GEMM), (25, 40, GEMM)], grids=[(28, 4, 1), (28, 4, 1), (148, 4, 1)])
    splits = decompose(trace).classes[0].splits
    assert [(item.operation, item.ns, item.launches) for item in splits] == [
        ("mul_mat_q, grid 28x4x1", 15, 2),
        ("mul_mat_q, grid 148x4x1", 15, 1),
    ]


def test_variants_of_a_template_are_one_split_and_grids_of_any_size_stay_apart():
    variant = GEMM.replace("false", "true")
    grids = [(1, 1, 1), (1, 1, 1), (1, 1 << 20, 1), (1, 1, 1 << 30), (1 << 30, 1, 1)]
    trace = make_trace([(10, 20, GEMM), *((20 + i, 21 + i, variant) for i in range(4))], grids=grids)
    splits = decompose(trace).classes[0].splits
    assert [(item.operation, item.ns) for item in splits] == [
        ("mul_mat_q, grid 1x1x1", 11),
        ("mul_mat_q, grid 1x1048576x1", 1),
        ("mul_mat_q, grid 1x1x1073741824", 1),
        ("mul_mat_q, grid 1073741824x1x1", 1),
    ]


def test_many_shapes_are_kept_within_bounds_and_still_add_up():
    count = MAX_SPLITS + 9
    trace = make_trace([(10 + 2 * i, 11 + 2 * i, GEMM) for i in range(count)], grids=[(i + 1, 1, 1) for i in range(count)])
    item = decompose(trace).classes[0]
    assert len(item.splits) == MAX_SPLITS + 1
    assert item.splits[-1].operation == OTHER
    assert sum(split.ns for split in item.splits) == item.ns == count


def test_spans_on_a_cpu_have_host_code_between_them_and_the_label_always_wins():
    labels = (_label("attn_q", "q4_K GEMM", 512), _label("attention", "attention", 7))
    kernels = [(10, 20, "rms_norm_f32", 0, 0, -1, 0), (24, 30, "attention", 0, 0, -1, 1)]
    trace = make_trace(kernels, operations=labels, source_format="spans", window=(5, 33))
    result = decompose(trace)
    assert result.gap_ns == {"host code": 12}
    assert classes_of(result) == {"q4_K GEMM": 10, "attention": 6}
    assert closes(result)
    with pytest.raises(NoActivityError, match="no operation recorded"):
        decompose(make_trace(source_format="spans"))


def test_unknown_symbols_are_listed_longest_first():
    result = decompose(make_trace([(10, 20, "zork"), (20, 50, "blub"), (50, 90, NORM)]))
    assert result.unclassified == ("blub", "zork")


def test_row_order_does_not_matter_beyond_ties():
    kernels = [(10, 20, GEMM), (15, 30, NORM), (40, 45, "zork")]
    trace = make_trace(kernels, [(18, 36)], grids=[(1, 1, 1), (2, 1, 1), (3, 1, 1)])
    order = np.array([2, 0, 1])
    columns = ("start", "end", "name", "device", "stream", "correlation", "grid")
    shuffled = replace(trace.launches, **{name: getattr(trace.launches, name)[order] for name in columns})
    assert decompose(replace(trace, launches=shuffled)) == decompose(trace)
