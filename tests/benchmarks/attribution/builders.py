"""Small traces for the tests: rows of tuples in, columns out."""

from __future__ import annotations

import numpy as np

from benchmarks.attribution.events import ApiCalls, Copies, Launches, OperationLabel, Trace


def _column(rows, index, kind=np.int64):
    return np.array([row[index] for row in rows], dtype=kind)


def make_trace(
    kernels=(),
    copies=None,
    calls=None,
    *,
    operations: tuple[OperationLabel, ...] = (),
    source_format: str = "cupti",
    window: tuple[int, int] | None = None,
    grids=None,
) -> Trace:
    """``kernels``: (start, end, name[, device[, stream[, correlation[, operation]]]]); ``copies``: (start, end[, device[,
    correlation]]); ``calls``: (start, correlation)."""
    kernels = [(*row, *(0, 7, -1, -1)[len(row) - 3 :]) for row in kernels]
    names = (*dict.fromkeys(row[2] for row in kernels), "cudaLaunchKernel")
    number = {name: index for index, name in enumerate(names)}
    launches = Launches(
        start=_column(kernels, 0),
        end=_column(kernels, 1),
        name=np.array([number[row[2]] for row in kernels], dtype=np.int32),
        device=_column(kernels, 3, np.int32),
        stream=_column(kernels, 4),
        correlation=_column(kernels, 5),
        grid=None if grids is None else np.array(grids, dtype=np.int32),
        operation=_column(kernels, 6, np.int32) if operations else None,
    )
    copy_columns = None
    if copies is not None:
        copies = [(*row, *(0, -1)[len(row) - 2 :]) for row in copies]
        zeros = np.zeros(len(copies), dtype=np.int64)
        copy_columns = Copies(
            start=_column(copies, 0),
            end=_column(copies, 1),
            device=_column(copies, 2, np.int32),
            stream=zeros,
            kind=zeros.astype(np.int32),
            correlation=_column(copies, 3),
        )
    api = None
    if calls is not None:
        api = ApiCalls(
            start=_column(calls, 0),
            end=_column(calls, 0) + 1,
            name=np.full(len(calls), len(names) - 1, dtype=np.int32),
            thread=np.zeros(len(calls), dtype=np.int64),
            correlation=_column(calls, 1),
        )
    return Trace(
        source_format=source_format,
        names=names,
        launches=launches,
        copies=copy_columns,
        api_calls=api,
        copy_kinds=("host to device",),
        operations=operations,
        window_ns=window,
    )
