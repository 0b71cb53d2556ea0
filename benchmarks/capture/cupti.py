"""The GPU's tracer: CUPTI in this process, through ``cupti-python``. It sees the engine's launches and llama.cpp's alike.

Between ``begin`` and ``end`` of an operation every CUDA call carries an external correlation id, the operation's index; the
launch made by a call has the call's correlation id, so a launch knows its operation. Launches of a replayed CUDA graph come
from one call for all: they keep their node's id and no operation. Times are CUPTI's clock, integer ns.
How records come here: cupti_buffers.py; what they become: cupti_records.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..attribution.errors import UserFacingError
from ..attribution.events import OperationLabel, Trace
from .cupti_buffers import BUFFER_BYTES, Buffers, Layouts, layouts_of, loaded_library, read_buffer
from .cupti_records import (
    DRIVER,
    EXTERNAL_CORRELATION,
    KERNEL,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    RUNTIME,
    Records,
    records_trace,
)

INSTRUMENT_VERSION = 3
"""Raise it when the way of measuring changes: records of two instruments are not compared."""

_KINDS = (MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, MEMCPY2, EXTERNAL_CORRELATION)
_CUSTOM0 = 3  # CUpti_ExternalCorrelationKind
_FORCED = 1


class CuptiUnavailableError(UserFacingError):
    """No CUPTI in this process. One line: why, and what to do."""


def load_cupti() -> Any:
    """The ``cupti`` module. Raises CuptiUnavailableError."""
    try:
        return importlib.import_module("cupti.cupti")
    except (ImportError, OSError, RuntimeError) as error:
        raise CuptiUnavailableError(
            f"CUPTI: {error}; pip install 'cupti-python~=13.0' (of the CUDA version that is installed) to trace kernels"
        ) from error


_current: CuptiCapture | None = None
_registered = False
_direct: tuple[Buffers, Layouts] | None = None
"""Where CUPTI fills buffers of ours; else cupti-python hands out its records one by one."""


def _request() -> tuple[int, int]:
    return BUFFER_BYTES, 0


def _completed(activities: list[Any]) -> None:
    if _current is not None:
        _current.records.take(activities)


def _filled(raw: bytes, starts: list[int]) -> None:
    if _current is not None:
        _current.buffers.append((raw, starts))


def _register(cupti: Any) -> None:
    """Say once in this process who takes the records. Raises what cupti-python does."""
    global _registered, _direct
    if _registered:
        return
    # Its first call loads CUPTI.
    cupti.get_timestamp()
    layouts = layouts_of(cupti)
    buffers = loaded_library() if layouts is not None else None
    if layouts is not None and buffers is not None and buffers.register(_filled):
        _direct = buffers, layouts
    else:
        cupti.activity_register_callbacks(_request, _completed)
    _registered = True


class CuptiCapture:
    """An observer and a context manager: what the device does inside the ``with`` becomes ``trace()``.

    ``label`` turns the engine's description of an operation into the attribution core's.
    """

    def __init__(self, label: Callable[[Any], OperationLabel], cupti: Any | None = None) -> None:
        """Raises CuptiUnavailableError where there is no CUPTI, or another tool holds it."""
        self._cupti = cupti or load_cupti()
        self._label = label
        self._operations: list[Any] = []
        self._first, self._restarted = 0, 0
        self.records = Records()
        self.buffers: list[tuple[bytes, list[int]]] = []
        """Filled and not read yet."""
        self._window = (0, 0)
        self._call("activity_register_callbacks", _register, self._cupti)

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
        self._first, self._restarted = 0, 0
        self.records, self.buffers = Records(), []
        _current = self
        for kind in _KINDS:
            self._call("activity_enable", self._cupti.activity_enable, kind)
        self._window = (int(self._cupti.get_timestamp()), 0)
        return self

    def restart(self) -> None:
        """Leave out of the trace what was seen since entering; the device must be synchronised.

        The first records under CUPTI cost what an 8 MiB buffer costs to allocate: 1.2 to 4 ms on an H200. So nothing is
        flushed here either: that would give the buffer back, and the next record would ask for another.
        """
        self._first, self._restarted = len(self._operations), int(self._cupti.get_timestamp())
        self._window = (self._restarted, 0)

    def ended(self, ns: int) -> None:
        """The trace's window is the last ``ns`` up to now: what a call timed itself, without what it did before that."""
        now = int(self._cupti.get_timestamp())
        self._window = (now - ns, now)

    def __exit__(self, *error: object) -> None:
        global _current
        if not self._window[1]:
            self._window = (self._window[0], int(self._cupti.get_timestamp()))
        self._call("activity_flush_all", self._cupti.activity_flush_all, _FORCED)
        for kind in _KINDS:
            self._call("activity_disable", self._cupti.activity_disable, kind)
        _current = None
        if _direct is not None:
            filling, layouts = _direct
            if filling.failed:
                raise CuptiUnavailableError(f"CUPTI: a buffer of records ends in status {filling.failed}, expected 12")
            for raw, starts in self.buffers:
                read_buffer(self.records, raw, starts, layouts)
            self.buffers.clear()

    def trace(self) -> Trace:
        """What was seen between entering and leaving; both must happen with the device synchronised."""
        labels = tuple(self._label(operation) for operation in self._operations[self._first :])
        records = self.records.since(self._restarted, self._first) if self._restarted else self.records
        return records_trace(records, labels, self._window, self._call_name)

    def _call_name(self, kind: int, callback: int) -> str:
        domain = self._cupti.CallbackDomain.DRIVER_API if kind == DRIVER else self._cupti.CallbackDomain.RUNTIME_API
        return str(self._cupti.get_callback_name(domain, callback))

    def _call(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            function(*arguments)
        except self._cupti.cuptiError as error:
            raise CuptiUnavailableError(
                f"CUPTI: {name} failed ({error}); end other profilers of this process (ncu, nsys, a second CUPTI user)"
            ) from error
