from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.events import Ranges, TraceError
from benchmarks.attribution.ranges import label_by_ranges

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
