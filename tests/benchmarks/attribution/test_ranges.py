from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.events import Ranges, TraceError
from benchmarks.attribution.ranges import MAX_RANGES, OTHER_RANGES, OUTSIDE, label_by_ranges, range_times

from .builders import make_trace


def with_ranges(trace, rows):
    """``rows``: (start, end, name, thread)."""
    names = tuple(dict.fromkeys([*trace.names, *(row[2] for row in rows)]))
    return replace(
        trace,
        names=names,
        ranges=Ranges(
            start=np.array([row[0] for row in rows], dtype=np.int64),
            end=np.array([row[1] for row in rows], dtype=np.int64),
            name=np.array([names.index(row[2]) for row in rows], dtype=np.int32),
            thread=np.array([row[3] for row in rows], dtype=np.int64),
        ),
    )


def named(trace):
    return [trace.operations[index].name if index >= 0 else None for index in trace.launches.operation]


def test_the_innermost_open_range_of_the_calling_thread_names_the_launch():
    kernels = [(100 + 10 * i, 105 + 10 * i, "rms_norm_f32", 0, 7, i + 1) for i in range(4)]
    trace = make_trace([*kernels, (150, 155, "zork", 0, 7, 9)], calls=[(12, 1), (25, 2), (35, 3), (60, 4)])
    trace = with_ranges(trace, [(10, 40, "layer 0", 0), (20, 30, "attn_q", 0), (55, 70, "elsewhere", 1)])
    labelled = label_by_ranges(trace)
    assert named(labelled) == ["layer 0", "attn_q", "layer 0", None, None]
    assert named(label_by_ranges(trace, "^layer")) == ["layer 0", "layer 0", "layer 0", None, None]
    found = {item.name: item for item in decompose(labelled).classes}
    assert {split.operation: split.ns for split in found["norm"].splits} == {"layer 0": 10, "attn_q": 5, "rms_norm_f32": 5}
    assert set(found) == {"norm", "unclassified"}


@st.composite
def _nested(draw, left=1, right=60, depth=0):
    """Ranges that nest, some of them touching."""
    rows = []
    at = left
    while depth < 3 and at < right and draw(st.booleans()):
        start = draw(st.integers(at, right))
        end = draw(st.integers(start, right))
        rows.append((start, end, f"r{draw(st.integers(0, 5))}", 0))
        if end > start:
            rows.extend(draw(_nested(start, end, depth + 1)))
        at = end
    return rows


@given(_nested(), st.lists(st.integers(1, 65), min_size=1, max_size=6))
def test_it_agrees_with_a_search_over_all_ranges(rows, calls):
    kernels = [(100 + i, 101 + i, "k", 0, 7, i + 1) for i in range(len(calls))]
    trace = with_ranges(make_trace(kernels, calls=[(call, i + 1) for i, call in enumerate(calls)]), rows)
    result = label_by_ranges(trace)
    for call, name in zip(calls, named(result), strict=True):
        open_now = [row for row in rows if row[0] <= call < row[1]]
        shortest = min((row[1] - row[0] for row in open_now), default=0)
        expected = {row[2] for row in open_now if row[1] - row[0] == shortest}
        assert name in expected if expected else name is None


def test_what_is_missing_is_said():
    trace = make_trace([(100, 105, "k", 0, 7, 1)], calls=[(12, 1)])
    with pytest.raises(TraceError, match="record both"):
        label_by_ranges(trace)
    with pytest.raises(TraceError, match="not a regular expression"):
        label_by_ranges(with_ranges(trace, [(1, 2, "a", 0)]), "(")


def test_a_patterns_group_names_the_range_and_pytorchs_numbers_of_a_call_are_left_out():
    kernels = [(100 + 10 * i, 105 + 10 * i, "rms_norm_f32", 0, 7, i + 1) for i in range(3)]
    trace = make_trace(kernels, calls=[(12, 1), (25, 2), (35, 3)])
    calls = ["aten::mm, seq = 12, op_id = 7", "aten::mm, op_id = 8, sizes = [[2]]", "x, y"]
    trace = with_ranges(trace, [(10 * i + 10, 10 * i + 20, name, 0) for i, name in enumerate(calls)])
    assert named(label_by_ranges(trace)) == ["aten::mm", "aten::mm", "x, y"]
    assert len(label_by_ranges(trace).operations) == 2
    assert named(label_by_ranges(trace, "mm")) == ["aten::mm", "aten::mm", None]
    assert named(label_by_ranges(trace, r"seq = (\d+)")) == ["12", None, None]


def test_ranges_add_up_to_busy_whatever_overlaps():
    kernels = [
        (100, 120, "rms_norm_f32", 0, 7, 1),
        (110, 140, "k_set_rows", 0, 8, 2),  # 10 ns of it beside the norm
        (150, 157, "rms_norm_f32", 0, 7, 3),
        (160, 163, "rms_norm_f32", 1, 7, 1),  # the other device
    ]
    trace = make_trace(kernels, calls=[(12, 1), (25, 2), (35, 3)])
    trace = label_by_ranges(with_ranges(trace, [(10, 20, "a", 0), (20, 30, "b", 0)]))
    found = range_times(trace, 0, (100, 155))
    assert [(row.name, row.ns, row.launches, row.classes) for row in found] == [
        ("a", 20, 1, (("norm", 20),)),
        ("b", 20, 1, (("kv write", 20),)),
        (OUTSIDE, 5, 1, (("norm", 5),)),
    ]
    assert sum(row.ns for row in found) == decompose(trace, device=0, window=(100, 155)).busy_ns


def test_many_ranges_end_in_one_row_that_holds_the_rest():
    count = MAX_RANGES + 5
    kernels = [(1000 + 10 * i, 1009 + 10 * i - i // 10, "rms_norm_f32", 0, 7, i + 1) for i in range(count)]
    trace = make_trace(kernels, calls=[(10 * i + 12, i + 1) for i in range(count)])
    trace = label_by_ranges(with_ranges(trace, [(10 * i + 10, 10 * i + 20, f"r{i}", 0) for i in range(count)]))
    found = range_times(trace, 0, (1000, 2000))
    assert (len(found), found[-1].name, found[-1].launches) == (MAX_RANGES + 1, OTHER_RANGES, 5)
    assert sum(row.ns for row in found) == sum(end - start for start, end, *_ in kernels)
