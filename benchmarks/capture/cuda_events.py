"""Where there is no CUPTI: CUDA events around each operation of the engine. Operations are timed, kernels are not named.

An operation's launches run one after the other on one stream, so the time between its two events is its device time plus
what the device waited inside it. The records say that they were taken so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..attribution.events import Launches, OperationLabel, Trace

INSTRUMENT_VERSION = 1
NOTE = "CUDA events around operations: no kernel names, and gaps inside an operation count as its time; install cupti-python"


class EventRecorder:
    """An observer and a context manager, as the other tracers are. ``make_event`` gives an event with ``record()``;
    ``elapsed`` the milliseconds between two recorded events."""

    def __init__(
        self, label: Callable[[Any], OperationLabel], make_event: Callable[[], Any], elapsed: Callable[[Any, Any], float]
    ) -> None:
        self._label, self._make, self._elapsed = label, make_event, elapsed
        self._open: list[Any] = []
        self._spans: list[tuple[Any, Any, Any]] = []
        self._edges: list[Any] = []

    def _mark(self) -> Any:
        event = self._make()
        event.record()
        return event

    def begin(self, operation: Any) -> None:
        self._open.append(self._mark())

    def end(self, operation: Any) -> None:
        self._spans.append((self._open.pop(), self._mark(), operation))

    def __enter__(self) -> EventRecorder:
        self._spans.clear()
        self._edges = [self._mark()]
        return self

    def __exit__(self, *error: object) -> None:
        self._edges.append(self._mark())

    def trace(self) -> Trace:
        """What was seen between entering and leaving; the device must be synchronised."""
        first, last = self._edges
        if self._spans:
            last.synchronize()
        labels = tuple(self._label(operation) for _, _, operation in self._spans)
        names = tuple(dict.fromkeys(label.name for label in labels))
        rows = len(labels)
        launches = Launches(
            start=np.fromiter((self._after(first, start) for start, _, _ in self._spans), np.int64, rows),
            end=np.fromiter((self._after(first, end) for _, end, _ in self._spans), np.int64, rows),
            name=np.fromiter((names.index(label.name) for label in labels), np.int32, rows),
            device=np.zeros(rows, np.int32),
            stream=np.zeros(rows, np.int64),
            operation=np.arange(rows, dtype=np.int32),
        )
        # A time of 0 would read as "not collected", so the clock starts at 1.
        return Trace("spans", names, launches, operations=labels, window_ns=(1, self._after(first, last)), notes=(NOTE,))

    def _after(self, first: Any, event: Any) -> int:
        return 1 + max(0, round(self._elapsed(first, event) * 1e6))


def cupy_recorder(label: Callable[[Any], OperationLabel]) -> EventRecorder:
    """A recorder on CuPy's current stream."""
    import cupy

    return EventRecorder(label, cupy.cuda.Event, cupy.cuda.get_elapsed_time)
