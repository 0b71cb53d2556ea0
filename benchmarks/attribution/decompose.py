"""A trace in, one wall taken apart out: ``wall = classes + copy-only + gaps by cause``, exactly, in integer ns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import intervals
from .breakdown import class_times
from .classes import UNCLASSIFIED, Rule
from .events import ApiCalls, Int64, Trace, TraceError
from .record import Decomposition
from .timeline import layer_timeline

HOST_LATE, QUEUED, UNKNOWN, HOST_CODE = "host-late", "queued", "unknown", "host code"
SPANS = "spans"
"""``source_format`` of a trace that a CPU engine's operations made: one launch an operation, no device queue."""

Mask = NDArray[np.bool_]


class NoActivityError(TraceError):
    """Nothing was recorded on the device: that is not an idle device."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one device inside one window, clipped to it; ``row`` points back into the trace's columns."""

    row: NDArray[np.intp]
    start: Int64
    end: Int64


def devices(trace: Trace) -> tuple[int, ...]:
    """Ids of the devices that a launch or a copy was recorded on."""
    columns = [column.device for column in (trace.launches, trace.copies) if column is not None]
    return tuple(int(device) for device in np.unique(np.concatenate(columns))) if columns else ()


def decompose_devices(
    trace: Trace, *, window: tuple[int, int] | None = None, rules: tuple[Rule, ...] | None = None
) -> dict[int, Decomposition]:
    """One decomposition a device. Devices without a kernel record are left out; NoActivityError where none has any."""
    found: dict[int, Decomposition] = {}
    for device in devices(trace):
        try:
            found[device] = decompose(trace, device=device, window=window, rules=rules)
        except NoActivityError:
            continue
    if not found:
        raise NoActivityError(_nothing(trace, None))
    return found


def default_window(trace: Trace, device: int | None = None) -> tuple[int, int]:
    """The wall's start and end: the trace's own where it knows it, else first start to last end of launches and copies."""
    if trace.window_ns is not None:
        return trace.window_ns
    edges = [
        (int(start[mask].min()), int(end[mask].max())) for start, end, mask in _columns(trace, device) if bool(np.any(mask))
    ]
    if not edges:
        raise NoActivityError(_nothing(trace, device))
    return min(edge[0] for edge in edges), max(edge[1] for edge in edges)


def decompose(
    trace: Trace,
    *,
    device: int | None = None,
    window: tuple[int, int] | None = None,
    rules: tuple[Rule, ...] | None = None,
) -> Decomposition:
    """Take apart the wall of one device.

    ``device`` may be left out where the trace holds one. ``window`` is (start, end) on the trace's clock; left out, it is
    ``default_window``. Rows that reach over an edge of the window are cut there. Raises NoActivityError where no kernel
    was recorded, TraceError where the trace has no timeline or holds impossible times.
    """
    if trace.launches is None:
        raise TraceError(f"{trace.source_format}: sums without a timeline, so the wall is unknown; give a trace with times")
    if device is None:
        device = _only_device(trace)
    _refuse_impossible(trace)
    window = default_window(trace, device) if window is None else window
    if window[1] <= window[0]:
        raise TraceError(f"window {window[0]}..{window[1]} ns is empty or reversed; give a start before its end")
    sides = _columns(trace, device)
    kernels = _inside(*sides[0], window)
    copies = _inside(*sides[1], window) if len(sides) > 1 else _Rows(np.zeros(0, np.intp), *_empty())
    if kernels.row.size == 0:
        raise NoActivityError(_nothing(trace, device, window))

    busy = intervals.union(kernels.start, kernels.end)
    copy_only = intervals.subtract((copies.start, copies.end), busy)
    gap_ns = _gap_causes(trace, device, window, kernels, copies)
    attributed = intervals.attribute(kernels.start, kernels.end)
    label_wins = trace.source_format == SPANS
    classes = class_times(trace, kernels.row, attributed, rules, label_wins=label_wins)
    result = Decomposition(
        wall_ns=window[1] - window[0],
        busy_ns=intervals.total(busy),
        copy_ns=intervals.total(copy_only),
        gap_ns=gap_ns,
        classes=classes,
        unclassified=next((item.symbols for item in classes if item.name == UNCLASSIFIED), ()),
        summed_ns=int(np.sum(kernels.end - kernels.start)),
        span_ns=int(kernels.end.max() - kernels.start.min()),
        copies_summed_ns=None if trace.copies is None else int(np.sum(copies.end - copies.start)),
        not_collected=_not_collected(trace, device),
        timeline=layer_timeline(trace, kernels.row, rules, label_wins=label_wins),
    )
    closure = sum(item.ns for item in result.classes) + result.copy_ns + sum(result.gap_ns.values())
    if closure != result.wall_ns or sum(item.ns for item in result.classes) != result.busy_ns:
        raise AssertionError(f"decomposition does not close: {closure} of {result.wall_ns} ns")
    return result


def kernel_rows(trace: Trace, device: int, window: tuple[int, int]) -> tuple[NDArray[np.intp], Int64, Int64]:
    """Rows of the launches of ``device`` inside ``window``, their starts and ends clipped to it, in order of start."""
    found = _inside(*_columns(trace, device)[0], window)
    return found.row, found.start, found.end


def _only_device(trace: Trace) -> int:
    found = devices(trace)
    if not found:
        raise NoActivityError(_nothing(trace, None))
    if len(found) > 1:
        raise TraceError(f"the trace holds devices {', '.join(map(str, found))}; name one")
    return found[0]


def _refuse_impossible(trace: Trace) -> None:
    for kind, column in (("launches", trace.launches), ("copies", trace.copies)):
        if column is None:
            continue
        collected = (column.start != 0) & (column.end != 0)
        reversed_rows = int(np.count_nonzero(collected & (column.end < column.start)))
        if reversed_rows:
            raise TraceError(
                f"{trace.source_format}: {reversed_rows} of {len(column)} {kind} end before they start; export it anew"
            )


def _on_device(column: NDArray[np.int32], device: int | None) -> Mask:
    return np.ones(column.shape, dtype=np.bool_) if device is None else column == device


def _columns(trace: Trace, device: int | None) -> list[tuple[Int64, Int64, Mask]]:
    """Start, end and "on this device and collected" of launches and of copies."""
    return [
        (column.start, column.end, _on_device(column.device, device) & (column.start != 0) & (column.end != 0))
        for column in (trace.launches, trace.copies)
        if column is not None
    ]


def _not_collected(trace: Trace, device: int) -> int:
    columns = [column for column in (trace.launches, trace.copies) if column is not None]
    return sum(int(np.count_nonzero((c.device == device) & ((c.start == 0) | (c.end == 0)))) for c in columns)


def _inside(start: Int64, end: Int64, mask: Mask, window: tuple[int, int]) -> _Rows:
    overlaps = (start < window[1]) & (end > window[0])
    empty_inside = (start == end) & (start >= window[0]) & (start <= window[1])
    row = np.flatnonzero(mask & (overlaps | empty_inside))
    # In order of the uncut start: of two rows that the window's edge cuts, the one that began first owns the overlap.
    row = row[intervals.order_by_start(start[row])]
    return _Rows(row, *intervals.clip(start[row], end[row], window))


def _gap_causes(trace: Trace, device: int, window: tuple[int, int], kernels: _Rows, copies: _Rows) -> dict[str, int]:
    """Length of the instants without kernel or copy, by why the device waited.

    The wait ends with a launch or copy. Its API call began after the device had gone idle: the host was late. It began
    before: the device had the work queued. No record of the call, or nothing follows inside the window: unknown.
    """
    start, end = np.concatenate((kernels.start, copies.start)), np.concatenate((kernels.end, copies.end))
    idle = intervals.gaps((start, end), window)
    if trace.source_format == SPANS:
        return {HOST_CODE: intervals.total(idle)}
    lengths = idle[1] - idle[0]
    called = _call_starts(trace, kernels, copies)
    order = np.lexsort((called, start))
    following = np.searchsorted(start[order], idle[1], side="left")
    has_next = (following < start.size) & (idle[1] < window[1])
    at = order[np.minimum(following, start.size - 1)]
    call, known = called[at], has_next & (called[at] <= start[at])
    late = known & (call > _idle_since(trace, device, idle[0], window))
    return {
        HOST_LATE: int(lengths[late].sum()),
        QUEUED: int(lengths[known & ~late].sum()),
        UNKNOWN: int(lengths[~known].sum()),
    }


def _idle_since(trace: Trace, device: int, idle_start: Int64, window: tuple[int, int]) -> Int64:
    """When the device really went idle: a gap at the window's start may have begun before the window did."""
    if idle_start.size == 0 or idle_start[0] > window[0]:
        return idle_start
    earlier = [
        int(end[before].max())
        for start, end, mask in _columns(trace, device)
        if bool(np.any(before := mask & (start < window[0])))
    ]
    since = idle_start.copy()
    since[0] = max(earlier) if earlier else np.iinfo(np.int64).min
    return since


def _call_starts(trace: Trace, kernels: _Rows, copies: _Rows) -> Int64:
    """Start of the API call that made each launch and copy; the largest int64 where there is no record of it."""
    missing = np.iinfo(np.int64).max
    parts: list[Int64] = []
    for columns, rows in ((trace.launches, kernels), (trace.copies, copies)):
        correlation = None if columns is None else columns.correlation
        if correlation is None or trace.api_calls is None:
            parts.append(np.full(rows.row.size, missing, dtype=np.int64))
        else:
            parts.append(_lookup(trace.api_calls, correlation[rows.row], missing))
    return np.concatenate(parts)


def _lookup(calls: ApiCalls, wanted: Int64, missing: int) -> Int64:
    if calls.correlation is None or len(calls) == 0:
        return np.full(wanted.size, missing, dtype=np.int64)
    order = np.lexsort((calls.start, calls.correlation))
    keys = calls.correlation[order]
    place = np.minimum(np.searchsorted(keys, wanted, side="left"), keys.size - 1)
    return np.where((keys[place] == wanted) & (wanted > 0), calls.start[order][place], missing)


def _empty() -> tuple[Int64, Int64]:
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def _nothing(trace: Trace, device: int | None, window: tuple[int, int] | None = None) -> str:
    where = "" if device is None else f" on device {device}"
    where += "" if window is None else f" in {window[0]}..{window[1]} ns"
    what = "operation" if trace.source_format == SPANS else "GPU activity"
    return (
        f"{trace.source_format}: no {what} recorded{where}, which is not an idle device; record kernels or widen the window"
    )
