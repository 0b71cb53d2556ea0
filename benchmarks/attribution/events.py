"""The one form that every trace takes here: columns of launches, copies, API calls and ranges on one clock.

Importers and captures make a ``Trace``; everything after them reads nothing else. Columns are NumPy arrays, one row an
event, so that ten million launches stay columns and never become objects. A column that was not collected is None: it is
never filled with zeros, because a zero would be read as a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .errors import UserFacingError

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]


class TraceError(UserFacingError):
    """A trace that cannot be answered. Its text is the one line the user sees: what, where, seen, expected, what to do."""


@dataclass(frozen=True, slots=True)
class OperationLabel:
    """What the engine said of an operation (minfer.operations.Operation, or what an importer could derive)."""

    name: str
    kernel_class: str | None = None
    layer: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    quantisation: str | None = None
    macs: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Launches:
    """Kernel executions. Times in integer ns on the trace's clock, ``start <= end``; one row a launch, any order.

    A start or end of 0 means "not collected" (CUPTI's own convention): a clock that begins with the trace must not put
    its first event at 0.
    """

    start: Int64
    end: Int64
    name: Int32
    """Index into ``Trace.names``."""
    device: Int32
    stream: Int64
    correlation: Int64 | None = None
    """Links a launch to the API call that made it. Not unique: all nodes of a CUDA graph share one."""
    graph_node: Int64 | None = None
    """Node of the CUDA graph, -1 outside a graph."""
    grid: Int32 | None = None
    """Shape [rows, 3]."""
    block: Int32 | None = None
    """Shape [rows, 3]."""
    registers: Int32 | None = None
    """Per thread."""
    shared_memory: Int64 | None = None
    """Static plus dynamic, bytes per block."""
    operation: Int32 | None = None
    """Index into ``Trace.operations``, -1 where the engine did not say. One entry an execution: an operation that runs
    twice has two entries, so that its multiply-accumulates count twice."""

    def __len__(self) -> int:
        return int(self.start.shape[0])


@dataclass(frozen=True, slots=True)
class Copies:
    """Memory copies and memsets of the device. A memset is a copy without a source."""

    start: Int64
    end: Int64
    device: Int32
    stream: Int64
    kind: Int32
    """Index into ``Trace.copy_kinds`` ("host to device", "device to device", "memset", ...)."""
    bytes: Int64 | None = None
    correlation: Int64 | None = None

    def __len__(self) -> int:
        return int(self.start.shape[0])


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """Host calls of the CUDA runtime or driver: they tell why the device waited."""

    start: Int64
    end: Int64
    name: Int32
    """Index into ``Trace.names``."""
    thread: Int64
    correlation: Int64 | None = None

    def __len__(self) -> int:
        return int(self.start.shape[0])


@dataclass(frozen=True, slots=True)
class Ranges:
    """Named host intervals (NVTX, profiler steps, our own windows). They choose a window; they are not device time."""

    start: Int64
    end: Int64
    name: Int32
    """Index into ``Trace.names``."""
    thread: Int64

    def __len__(self) -> int:
        return int(self.start.shape[0])


@dataclass(frozen=True, slots=True)
class KernelSum:
    """A row of a trace that knows only sums: such a trace has no timeline, so no busy, no gap and no wall."""

    name: str
    launches: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """One kernel launch under Nsight Compute: replayed alone, so it has a cost and no place on a timeline."""

    name: str
    kernel_id: int
    device: int | None = None
    duration_ns: int | None = None
    bytes_read: int | None = None
    """From device memory."""
    bytes_written: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    percent_of_peak: dict[str, float] = field(default_factory=dict)
    """Metrics given in %, by ncu's name of them."""

    @property
    def bytes_per_second(self) -> float | None:
        """Device memory traffic over duration; None where either is unknown."""
        if self.duration_ns is None or self.bytes_read is None or self.bytes_written is None:
            return None
        return (self.bytes_read + self.bytes_written) / self.duration_ns * 1e9


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One row of llama-bench: a measured speed without a timeline."""

    nt: int
    """Prompt tokens; 0 for a pure generation test."""
    generated: int
    depth: int | None
    ubatch: int | None
    """None where the report does not say: llama-bench's Markdown leaves out what has its default."""
    tokens_per_second: float
    mean_ns: int | None = None
    stddev_ns: int | None = None
    samples_ns: tuple[int, ...] = ()
    batch: int | None = None
    model: str | None = None
    backend: str | None = None
    gpu: str | None = None
    commit: str | None = None
    test_time: str | None = None
    flash_attention: bool | None = None


@dataclass(frozen=True)
class Trace:
    """Everything read from one file or taken in one capture."""

    source_format: str
    """"nsys sqlite", "kineto json", "nsys kern_sum csv", "cupti", "spans", ..."""
    names: tuple[str, ...] = ()
    launches: Launches | None = None
    """None where the format holds no timeline; a length of 0 means that no kernel was recorded."""
    copies: Copies | None = None
    api_calls: ApiCalls | None = None
    ranges: Ranges | None = None
    copy_kinds: tuple[str, ...] = ()
    operations: tuple[OperationLabel, ...] = ()
    sums: tuple[KernelSum, ...] = ()
    profiles: tuple[KernelProfile, ...] = ()
    bench_results: tuple[BenchResult, ...] = ()
    window_ns: tuple[int, int] | None = None
    """Start and end of the measured wall on the trace's clock where the source knows it; None: the span of a device's
    launches and copies."""
    device_names: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What the importer left out or assumed, one sentence each; shown with the answer."""
