"""Operations from named ranges: the range that was open on the calling thread when a launch was made names its work."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .events import ApiCalls, Int64, OperationLabel, Ranges, Trace, TraceError

Index = NDArray[np.int64]


def label_by_ranges(trace: Trace, pattern: str | None = None) -> Trace:
    """The trace with an operation for each launch whose API call lies in a range whose name matches ``pattern``.

    Ranges nest; the innermost one names the launch. Launches without a recorded call, or outside every range, stay
    without a label. Classes do not change: a range says where work belongs, not what kind it is. Raises TraceError where
    the trace has no ranges or no API calls, or the pattern is not a regular expression.
    """
    if trace.launches is None or trace.ranges is None or trace.api_calls is None or trace.launches.correlation is None:
        raise TraceError(f"{trace.source_format}: needs launches linked to API calls, and named ranges; record both")
    try:
        wanted = np.array([pattern is None or re.search(pattern, name) is not None for name in trace.names], np.bool_)
    except re.error as error:
        raise TraceError(f"range pattern {pattern!r} is not a regular expression: {error}") from error
    call = _call_of(trace.api_calls, trace.launches.correlation)
    holds_time = trace.ranges.end > trace.ranges.start
    inner = _innermost(trace.ranges, wanted[trace.ranges.name] & holds_time, trace.api_calls)
    chosen = np.where(call >= 0, inner[call], -1)
    used, compact = np.unique(chosen[chosen >= 0], return_inverse=True)
    labels = tuple(OperationLabel(trace.names[index]) for index in used)
    operation = np.full(chosen.size, -1, dtype=np.int32)
    operation[chosen >= 0] = compact
    return replace(trace, launches=replace(trace.launches, operation=operation), operations=labels)


def _call_of(calls: ApiCalls, correlation: Int64) -> Index:
    """Row of the API call that made each launch, -1 where there is none."""
    if calls.correlation is None or len(calls) == 0:
        return np.full(correlation.size, -1, dtype=np.int64)
    order = np.lexsort((calls.start, calls.correlation))
    keys = calls.correlation[order]
    place = np.minimum(np.searchsorted(keys, correlation), keys.size - 1)
    return np.where((keys[place] == correlation) & (correlation > 0), order[place], -1)


def _innermost(ranges: Ranges, wanted: NDArray[np.bool_], calls: ApiCalls) -> Index:
    """Name of the innermost wanted range open at each call's start on its thread, -1 where there is none.

    Ranges of one thread nest, so those of one depth do not overlap, and a deeper one overrules a shallower one.
    """
    name = np.full(len(calls), -1, dtype=np.int64)
    for thread in np.unique(ranges.thread[wanted]):
        mine = np.flatnonzero(wanted & (ranges.thread == thread))
        mine = mine[np.lexsort((-ranges.end[mine], ranges.start[mine]))]
        start, end = ranges.start[mine], ranges.end[mine]
        depth = np.arange(mine.size) - np.searchsorted(np.sort(end), start, side="right")
        at = np.flatnonzero(calls.thread == thread)
        when = calls.start[at]
        for level in range(int(depth.max(initial=-1)) + 1):
            row = np.flatnonzero(depth == level)
            place = np.searchsorted(start[row], when, side="right") - 1
            inside = (place >= 0) & (when < end[row[np.maximum(place, 0)]])
            name[at[inside]] = ranges.name[mine[row[place[inside]]]]
    return name
