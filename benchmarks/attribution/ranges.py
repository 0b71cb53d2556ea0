"""Operations from named ranges: the range that was open on the calling thread when a launch was made names its work."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from . import intervals
from .breakdown import launch_classes
from .classes import Rule
from .decompose import kernel_rows
from .events import ApiCalls, Int64, OperationLabel, Ranges, Trace, TraceError

Index = NDArray[np.int64]

_CALL_NUMBERS = re.compile(r", (seq|op_id|sizes|input_op_ids) = .*$")
"""What PyTorch's emit_nvtx adds to an operator's name, different for each call."""

MAX_RANGES = 40
"""Ranges listed, most time first; the rest is one row named OTHER_RANGES, so that the rows add up to busy."""
OTHER_RANGES = "other ranges"
OUTSIDE = "(outside every range)"


@dataclass(frozen=True, slots=True)
class RangeTime:
    """Device time of the kernels that were launched inside the ranges of one name."""

    name: str
    ns: int
    """Attributed time: instants at which launches overlap are counted once, so that the ranges add up to busy."""
    launches: int
    classes: tuple[tuple[str, int], ...]
    """Name and ns of each kernel class in it, most first."""


def range_times(
    trace: Trace, device: int, window: tuple[int, int], rules: tuple[Rule, ...] | None = None
) -> tuple[RangeTime, ...]:
    """Busy time of one device by named range, of a trace that ``label_by_ranges`` labelled; most time first."""
    assert trace.launches is not None and trace.launches.operation is not None
    rows, start, end = kernel_rows(trace, device, window)
    attributed = intervals.attribute(start, end)
    names, kernel_class = launch_classes(trace, rows, rules, label_wins=False)
    operation = trace.launches.operation[rows].astype(np.int64)
    ns = np.zeros((len(trace.operations) + 1, len(names)), np.int64)
    np.add.at(ns, (operation, kernel_class), attributed)  # -1, outside every range, is the last row
    launches = np.bincount(np.where(operation < 0, len(trace.operations), operation), minlength=len(ns))
    labels = [*(label.name for label in trace.operations), OUTSIDE]
    total = ns.sum(axis=1)
    order = [int(row) for row in np.argsort(-total, kind="stable") if launches[row]]
    shown = order[:MAX_RANGES]
    found = [RangeTime(labels[row], int(total[row]), int(launches[row]), _most_first(names, ns[row])) for row in shown]
    if rest := order[MAX_RANGES:]:
        together = ns[rest].sum(axis=0)
        found.append(RangeTime(OTHER_RANGES, int(together.sum()), int(launches[rest].sum()), _most_first(names, together)))
    return tuple(found)


def _most_first(names: list[str], ns: Index) -> tuple[tuple[str, int], ...]:
    return tuple((names[index], int(ns[index])) for index in np.argsort(-ns, kind="stable").tolist() if ns[index])


def label_by_ranges(trace: Trace, pattern: str | None = None) -> Trace:
    """The trace with an operation for each launch whose API call lies in a range whose name matches ``pattern``.

    Ranges nest; the innermost one names the launch: by the pattern's first group where it has one, so that ``(layer)``
    puts all layers together, else by its name less PyTorch's numbers of the call. Launches without a recorded call, or
    outside every range, stay without a label. Classes do not change: a range says where work belongs, not what kind it
    is. Raises TraceError where the trace has no ranges or no API calls, or the pattern is not a regular expression.
    """
    if trace.launches is None or trace.ranges is None or trace.api_calls is None or trace.launches.correlation is None:
        raise TraceError(f"{trace.source_format}: needs launches linked to API calls, and named ranges; record both")
    try:
        said = [_found(pattern, name) for name in trace.names]
    except re.error as error:
        raise TraceError(f"range pattern {pattern!r} is not a regular expression: {error}") from error
    wanted = np.array([text is not None for text in said], np.bool_)
    number: dict[str | None, int] = {}
    label = np.array([number.setdefault(text, len(number)) for text in said], np.int64)
    call = _call_of(trace.api_calls, trace.launches.correlation)
    holds_time = trace.ranges.end > trace.ranges.start
    inner = _innermost(trace.ranges, wanted[trace.ranges.name] & holds_time, trace.api_calls)
    chosen = np.where((call >= 0) & (inner[call] >= 0), label[inner[call]], -1)
    used, compact = np.unique(chosen[chosen >= 0], return_inverse=True)
    texts = list(number)
    labels = tuple(OperationLabel(texts[index] or "") for index in used)
    operation = np.full(chosen.size, -1, dtype=np.int32)
    operation[chosen >= 0] = compact
    return replace(trace, launches=replace(trace.launches, operation=operation), operations=labels)


def _found(pattern: str | None, name: str) -> str | None:
    """What a range of this name is called, None where the pattern does not find it."""
    found = re.search(pattern or "", name)
    if found is None:
        return None
    return (found[1] or "") if found.re.groups else _CALL_NUMBERS.sub("", name)


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
