"""The GPU's tracer: CUPTI in this process, through ``cupti-python``. It sees the engine's launches and llama.cpp's alike.

Between ``begin`` and ``end`` of an operation every CUDA call carries an external correlation id, the operation's index; the
launch made by a call has the call's correlation id, so a launch knows its operation. Launches of a replayed CUDA graph come
from one call for all: they keep their node's id and no operation. Times are CUPTI's clock, integer ns.
Records: https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..attribution.errors import UserFacingError
from ..attribution.events import ApiCalls, Copies, Launches, OperationLabel, Trace

INSTRUMENT_VERSION = 2
"""Raise it when the way of measuring changes: records of two instruments are not compared."""

MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, MEMCPY2, EXTERNAL_CORRELATION = 1, 2, 4, 5, 10, 22, 39
"""CUpti_ActivityKind. KERNEL is the concurrent one: the other serialises the device."""
_KINDS = (MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, MEMCPY2, EXTERNAL_CORRELATION)
_CUSTOM0 = 3  # CUpti_ExternalCorrelationKind
_COPY_KINDS = {
    1: "host to device", 2: "device to host", 3: "host to array", 4: "array to host", 5: "array to array",
    6: "array to device", 7: "device to array", 8: "device to device", 9: "host to host", 10: "peer to peer",
}  # fmt: skip
_BUFFER_BYTES = 8 << 20
_FORCED = 1


class CuptiUnavailableError(UserFacingError):
    """No CUPTI in this process. One line: why, and what to do."""


@dataclass(slots=True)
class Records:
    """What CUPTI told, as plain tuples: its own objects die with their buffer."""

    kernels: list[tuple[Any, ...]] = field(default_factory=list)
    copies: list[tuple[Any, ...]] = field(default_factory=list)
    api: list[tuple[Any, ...]] = field(default_factory=list)
    external: dict[int, int] = field(default_factory=dict)
    """External id (an operation's index) by correlation id."""

    def take(self, activities: Iterable[Any]) -> None:
        """Keep what is needed of one buffer's records."""
        for a in activities:
            kind = a.kind
            if kind == KERNEL:
                self.kernels.append(
                    (
                        a.start, a.end, a.name, a.device_id, a.stream_id, a.correlation_id, a.graph_node_id or -1,
                        a.grid_x, a.grid_y, a.grid_z, a.block_x, a.block_y, a.block_z, a.registers_per_thread,
                        a.static_shared_memory + a.dynamic_shared_memory,
                    )
                )  # fmt: skip
            elif kind in (DRIVER, RUNTIME):
                self.api.append((a.start, a.end, kind, a.cbid, a.thread_id, a.correlation_id))
            elif kind == EXTERNAL_CORRELATION:
                self.external[a.correlation_id] = a.external_id
            elif kind in (MEMCPY, MEMCPY2):
                copy = _COPY_KINDS.get(a.copy_kind, "unknown copy")
                self.copies.append((a.start, a.end, a.device_id, a.stream_id, copy, a.bytes, a.correlation_id))
            elif kind == MEMSET:
                self.copies.append((a.start, a.end, a.device_id, a.stream_id, "memset", a.bytes, a.correlation_id))

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
    calls = [call_name(row[2], row[3]) for row in api]
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


def load_cupti() -> Any:
    """The ``cupti`` module. Raises CuptiUnavailableError."""
    try:
        return importlib.import_module("cupti.cupti")
    except (ImportError, OSError, RuntimeError) as error:
        raise CuptiUnavailableError(
            f"CUPTI: {error}; pip install 'cupti-python~=13.0' (of the CUDA version that is installed) to trace kernels"
        ) from error


_current: Records | None = None
_registered = False


def _request() -> tuple[int, int]:
    return _BUFFER_BYTES, 0


def _completed(activities: list[Any]) -> None:
    if _current is not None:
        _current.take(activities)


class CuptiCapture:
    """An observer and a context manager: what the device does inside the ``with`` becomes ``trace()``.

    ``label`` turns the engine's description of an operation into the attribution core's.
    """

    def __init__(self, label: Callable[[Any], OperationLabel], cupti: Any | None = None) -> None:
        """Raises CuptiUnavailableError where there is no CUPTI, or another tool holds it."""
        global _registered
        self._cupti = cupti or load_cupti()
        self._label = label
        self._operations: list[Any] = []
        self._first, self._restarted = 0, False
        self._records = Records()
        self._window = (0, 0)
        if not _registered:
            self._call("activity_register_callbacks", _request, _completed)
            _registered = True

    def begin(self, operation: Any) -> None:
        """CUDA calls belong to ``operation`` from here on."""
        self._cupti.activity_push_external_correlation_id(_CUSTOM0, len(self._operations))
        self._operations.append(operation)

    def end(self, operation: Any) -> None:
        """CUDA calls belong to whatever was there before."""
        self._cupti.activity_pop_external_correlation_id(_CUSTOM0)

    def __enter__(self) -> CuptiCapture:
        global _current
        self._operations.clear()
        self._first, self._restarted = 0, False
        self._records = _current = Records()
        for kind in _KINDS:
            self._call("activity_enable", kind)
        self._window = (int(self._cupti.get_timestamp()), 0)
        return self

    def restart(self) -> None:
        """Leave out of the trace what was seen since entering; the device must be synchronised.

        The first records under CUPTI cost what an 8 MiB buffer costs to allocate: 1.2 to 4 ms on an H200. So nothing is
        flushed here either: that would give the buffer back, and the next record would ask for another.
        """
        self._first, self._restarted = len(self._operations), True
        self._window = (int(self._cupti.get_timestamp()), 0)

    def __exit__(self, *error: object) -> None:
        global _current
        self._window = (self._window[0], int(self._cupti.get_timestamp()))
        self._call("activity_flush_all", _FORCED)
        for kind in _KINDS:
            self._call("activity_disable", kind)
        _current = None

    def trace(self) -> Trace:
        """What was seen between entering and leaving; both must happen with the device synchronised."""
        labels = tuple(self._label(operation) for operation in self._operations[self._first :])
        records = self._records.since(self._window[0], self._first) if self._restarted else self._records
        return records_trace(records, labels, self._window, self._call_name)

    def _call_name(self, kind: int, callback: int) -> str:
        domain = self._cupti.CallbackDomain.DRIVER_API if kind == DRIVER else self._cupti.CallbackDomain.RUNTIME_API
        return str(self._cupti.get_callback_name(domain, callback))

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            getattr(self._cupti, name)(*arguments)
        except self._cupti.cuptiError as error:
            raise CuptiUnavailableError(
                f"CUPTI: {name} failed ({error}); end other profilers of this process (ncu, nsys, a second CUPTI user)"
            ) from error
