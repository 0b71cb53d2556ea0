"""Traces of any size to measure the importers with: regular, so that what must come out is known without reading them."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

STEP_NS = 7001
"""From one launch to the next."""
FIRST_NS = 155_360_295_935
NAMES = 40
"""Distinct kernels."""
BATCH = 2000


def kernel_length_ns(index: int) -> int:
    """Kernels last 2 to 6 us, so none overlaps the next."""
    return 2000 + index * 7919 % 4000


def kernel_name(index: int) -> str:
    return f"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_32x6_tn_align8_{index % NAMES}>(P)"


def write_nsys_sqlite(path: Path, kernels: int) -> None:
    """An nsys export with one launch call a kernel. Rows are made inside SQLite, which takes a second a million."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
        CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
        CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
          contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
          globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
          launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
          gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
          blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
          graphNodeId INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
          globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
          callchainId INTEGER);
        """
    )
    connection.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200')")
    names = [(index, kernel_name(index)) for index in range(NAMES)] + [(NAMES, "cudaLaunchKernel_v7000")]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
    rows = "WITH RECURSIVE row(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM row WHERE i < ?)"
    start, process = f"{FIRST_NS} + i * {STEP_NS}", 77 << 24
    connection.execute(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL {rows} SELECT {start}, {start} + 2000 + i * 7919 % 4000, 0, 1, NULL, 7, i, "
        f"{process}, i % {NAMES}, i % {NAMES}, NULL, 0, 0, 64, i % 7 + 1, 1, 1, 256, 1, 1, 0, 4096, NULL FROM row",
        (kernels - 1,),
    )
    connection.execute(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME {rows} SELECT {start} - 4000, {start} - 2500, 0, {process | 1}, i, "
        f"{NAMES}, 0, NULL FROM row",
        (kernels - 1,),
    )
    connection.commit()
    connection.close()


def write_kineto_json(path: Path, kernels: int) -> None:
    """Gzipped Chrome JSON with five events a kernel: operator, launch call, both ends of the arrow, kernel."""
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],\n"traceEvents": [\n  ')
        for first in range(0, kernels, BATCH):
            last = min(first + BATCH, kernels)
            file.write(",\n  ".join(_events(index) for index in range(first, last)))
            file.write(",\n  " if last < kernels else "\n")
        file.write('],\n"traceName": "t.json", "displayTimeUnit": "ms", "baseTimeNanoseconds": 0}')


def _events(index: int) -> str:
    start = FIRST_NS + index * STEP_NS
    call, host = _microseconds(start - 4000), '"pid": 851, "tid": 851'
    link, arrow = f'"External id": {index}', f'"id": {index}, "cat": "ac2g", "name": "ac2g"'
    inputs = '"Input Dims": [[16, 559, 1024], [1024]], "Input type": ["c10::BFloat16", "Scalar"]'
    place = f'"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {index}, "registers per thread": 64'
    shape = f'"shared memory": 4096, "blocks per SM": 1.5, "warps per SM": 12.0, "grid": [{index % 7 + 1}, 1, 1]'
    device = f'"pid": 0, "tid": 7, "ts": {_microseconds(start)}'
    return ",\n  ".join(
        (
            f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", {host}, "ts": {_microseconds(start - 4900)}, "dur": 2.1, '
            f'"args": {{{link}, {inputs}}}}}',
            f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", {host}, "ts": {call}, "dur": 1.5, '
            f'"args": {{{link}, "cbid": 211, "correlation": {index}}}}}',
            f'{{"ph": "s", {host}, "ts": {call}, {arrow}}}',
            f'{{"ph": "X", "cat": "kernel", "name": "{kernel_name(index)}", {device}, '
            f'"dur": {_microseconds(kernel_length_ns(index))}, '
            f'"args": {{{link}, {place}, {shape}, "block": [256, 1, 1], "est. achieved occupancy %": 19}}}}',
            f'{{"ph": "f", {device}, {arrow}, "bp": "e"}}',
        )
    )


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"
