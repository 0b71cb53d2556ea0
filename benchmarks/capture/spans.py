"""The CPU's tracer: the host clock before and after each operation, kept as the same launches that a GPU trace holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..attribution.events import Launches, OperationLabel, Trace

INSTRUMENT_VERSION = 1
"""Raise it when the way of measuring changes: records of two instruments are not compared."""


class SpanRecorder:
    """An observer of the engine. Between ``begin`` and ``end`` it only reads the clock; the rest happens in ``trace``."""

    def __init__(self, label: Callable[[Any], OperationLabel]) -> None:
        """``label`` turns the engine's description of an operation into ours."""
        self._label = label
        self._started: list[int] = []
        self._spans: list[tuple[int, int, Any]] = []
        self._window = (0, 0)

    def begin(self, operation: Any) -> None:
        self._started.append(time.perf_counter_ns())

    def end(self, operation: Any) -> None:
        ended = time.perf_counter_ns()
        self._spans.append((self._started.pop(), ended, operation))

    def __enter__(self) -> SpanRecorder:
        self._spans.clear()
        self._started.clear()
        self._window = (time.perf_counter_ns(), 0)
        return self

    def __exit__(self, *error: object) -> None:
        self._window = (self._window[0], time.perf_counter_ns())

    def trace(self) -> Trace:
        """What was seen between entering and leaving."""
        return spans_trace([(start, end, self._label(operation)) for start, end, operation in self._spans], self._window)


def spans_trace(spans: Sequence[tuple[int, int, OperationLabel]], window_ns: tuple[int, int]) -> Trace:
    """Spans (start, end, label) in ns as a trace: one launch, and one operation, for each time an operation ran.

    Labels are not shared between runs of the same operation (one per ubatch): each run does its MACs anew.
    """
    names = tuple(dict.fromkeys(label.name for _, _, label in spans))
    index = {name: i for i, name in enumerate(names)}
    rows = len(spans)
    launches = Launches(
        start=np.fromiter((start for start, _, _ in spans), np.int64, rows),
        end=np.fromiter((end for _, end, _ in spans), np.int64, rows),
        name=np.fromiter((index[label.name] for _, _, label in spans), np.int32, rows),
        device=np.zeros(rows, np.int32),
        stream=np.zeros(rows, np.int64),
        operation=np.arange(rows, dtype=np.int32),
    )
    return Trace("spans", names, launches, operations=tuple(label for _, _, label in spans), window_ns=window_ns)
