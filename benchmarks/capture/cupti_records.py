"""The records of CUPTI that are kept, and a trace made of them.

https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..attribution.events import ApiCalls, Copies, Launches, OperationLabel, Trace

MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, MEMCPY2, EXTERNAL_CORRELATION = 1, 2, 4, 5, 10, 22, 39
"""CUpti_ActivityKind. KERNEL is the concurrent one: the other serialises the device."""
_COPY_KINDS = {
    1: "host to device", 2: "device to host", 3: "host to array", 4: "array to host", 5: "array to array",
    6: "array to device", 7: "device to array", 8: "device to device", 9: "host to host", 10: "peer to peer",
}  # fmt: skip
_COPY = ("start", "end", "device_id", "stream_id", "copy_kind", "bytes", "correlation_id")
_CALL = ("start", "end", "kind", "cbid", "thread_id", "correlation_id")
FIELDS = {
    KERNEL: (
        "start", "end", "name", "device_id", "stream_id", "correlation_id", "graph_node_id", "grid_x", "grid_y", "grid_z",
        "block_x", "block_y", "block_z", "registers_per_thread", "static_shared_memory", "dynamic_shared_memory",
    ),
    DRIVER: _CALL,
    RUNTIME: _CALL,
    EXTERNAL_CORRELATION: ("correlation_id", "external_id"),
    MEMCPY: _COPY,
    MEMCPY2: _COPY,
    MEMSET: ("start", "end", "device_id", "stream_id", "bytes", "correlation_id"),
}  # fmt: skip
"""What is kept of each kind of record."""


@dataclass(slots=True)
class Records:
    """What CUPTI told, as plain tuples: its own objects die with their buffer."""

    kernels: list[tuple[Any, ...]] = field(default_factory=list)
    copies: list[tuple[Any, ...]] = field(default_factory=list)
    api: list[tuple[Any, ...]] = field(default_factory=list)
    external: dict[int, int] = field(default_factory=dict)
    """External id (an operation's index) by correlation id."""

    def take(self, activities: Iterable[Any]) -> None:
        """Keep what is needed of the records that ``cupti-python`` hands out: objects with their kind's ``FIELDS``."""
        for activity in activities:
            kind = int(activity.kind)
            self.add(kind, tuple(getattr(activity, name) for name in FIELDS.get(kind, ())))

    def add(self, kind: int, row: tuple[Any, ...]) -> None:
        """Keep one record: its kind and its ``FIELDS``. One of a kind that has none there is left out."""
        if kind == KERNEL:
            *others, static, dynamic = row
            others[6] = others[6] or -1
            self.kernels.append((*others, static + dynamic))
        elif kind in (DRIVER, RUNTIME):
            self.api.append(row)
        elif kind == EXTERNAL_CORRELATION:
            self.external[row[0]] = row[1]
        elif kind in (MEMCPY, MEMCPY2):
            self.copies.append((*row[:4], _COPY_KINDS.get(row[4], "unknown copy"), *row[5:]))
        elif kind == MEMSET:
            self.copies.append((*row[:4], "memset", *row[4:]))

    def since(self, start: int, operation: int) -> Records:
        """What began at ``start`` or later, its operations counted from ``operation`` on. A start of 0 was not collected."""

        def kept(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            return [row for row in rows if row[0] >= start or row[0] == 0]

        return Records(
            kept(self.kernels),
            kept(self.copies),
            kept(self.api),
            {call: index - operation for call, index in self.external.items() if index >= operation},
        )


def records_trace(
    records: Records,
    operations: tuple[OperationLabel, ...],
    window_ns: tuple[int, int],
    call_name: Callable[[int, int], str],
    notes: tuple[str, ...] = (),
) -> Trace:
    """The records as columns. ``call_name`` names an API call from its kind (driver or runtime) and callback id."""
    kernels, copies, api = sorted(records.kernels), sorted(records.copies), sorted(records.api)
    # Thousands of calls of a few kinds: each is asked for once.
    called = {one: call_name(*one) for one in {(row[2], row[3]) for row in api}}
    calls = [called[row[2], row[3]] for row in api]
    names = tuple(dict.fromkeys([row[2] for row in kernels] + calls))
    index = {name: i for i, name in enumerate(names)}
    copy_kinds = tuple(dict.fromkeys(row[4] for row in copies))
    launches = Launches(
        start=_wide(kernels, 0),
        end=_wide(kernels, 1),
        name=np.array([index[row[2]] for row in kernels], np.int32),
        device=_narrow(kernels, 3),
        stream=_wide(kernels, 4),
        correlation=_wide(kernels, 5),
        graph_node=_wide(kernels, 6),
        grid=np.array([row[7:10] for row in kernels], np.int32).reshape(-1, 3),
        block=np.array([row[10:13] for row in kernels], np.int32).reshape(-1, 3),
        registers=_narrow(kernels, 13),
        shared_memory=_wide(kernels, 14),
        operation=np.array([_operation(records, row, len(operations)) for row in kernels], np.int32),
    )
    return Trace(
        "cupti",
        names,
        launches,
        Copies(
            start=_wide(copies, 0),
            end=_wide(copies, 1),
            device=_narrow(copies, 2),
            stream=_wide(copies, 3),
            kind=np.array([copy_kinds.index(row[4]) for row in copies], np.int32),
            bytes=_wide(copies, 5),
            correlation=_wide(copies, 6),
        ),
        ApiCalls(
            start=_wide(api, 0),
            end=_wide(api, 1),
            name=np.array([index[name] for name in calls], np.int32),
            thread=_wide(api, 4),
            correlation=_wide(api, 5),
        ),
        copy_kinds=copy_kinds,
        operations=operations,
        window_ns=window_ns,
        notes=notes,
    )


def _operation(records: Records, kernel: tuple[Any, ...], count: int) -> int:
    index = records.external.get(kernel[5], -1)
    return index if 0 <= index < count and kernel[6] == -1 else -1


def _wide(rows: list[tuple[Any, ...]], column: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([row[column] for row in rows], np.int64)


def _narrow(rows: list[tuple[Any, ...]], column: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array([row[column] for row in rows], np.int32)
