"""Small files of every trace format, each with values that a reader can add up by hand."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

T0 = 155_360_000_000
"""Where the clock of the nsys files stands when their first kernel begins, ns."""

KERNELS: tuple[tuple[int, int, int, int, int, str], ...] = (
    # start, end, device, stream, correlation, name
    (T0 + 0, T0 + 100, 0, 7, 1, "void mul_mat_q<(ggml_type)14, (int)128, (bool)0>(const char *, const int *)"),
    (T0 + 50, T0 + 150, 0, 8, 2, "void flash_attn_ext_f16<(int)128>(const char *)"),
    (T0 + 400, T0 + 1000, 0, 7, 3, "void mul_mat_q<(ggml_type)12, (int)128, (bool)0>(const char *, const int *)"),
    (T0 + 500, T0 + 700, 1, 7, 4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"),
)
"""Device 0: summed 800, busy 750, span 1000. Device 1: summed, busy and span 200."""
COPIES: tuple[tuple[int, int, int, int, int, int, int], ...] = (
    # start, end, device, stream, correlation, bytes, kind (1 host to device, 2 device to host)
    (T0 + 200, T0 + 300, 0, 9, 5, 4096, 1),
    (T0 + 600, T0 + 650, 0, 9, 6, 1024, 2),
)
"""Device 0: 150 ns of copies, of which 100 while no kernel runs."""
CALLS: tuple[tuple[int, int, int, int, str], ...] = (
    # start, end, thread, correlation, name
    (T0 - 300, T0 - 280, 1001, 1, "cudaLaunchKernel_v7000"),
    (T0 - 200, T0 - 190, 1001, 2, "cudaLaunchKernel_v7000"),
    (T0 + 350, T0 + 380, 1001, 3, "cudaLaunchKernel_v7000"),
    (T0 + 360, T0 + 390, 1002, 4, "cuLaunchKernelEx"),
)
RANGES: tuple[tuple[int, int | None, int, str], ...] = (
    # start, end, thread, name
    (T0 - 10, T0 + 350, 1001, "step"),
    (T0 + 390, T0 + 1100, 1001, "step"),
    (T0 + 395, None, 1001, "marker"),
)


def nsys_sqlite(
    path: Path,
    *,
    kernels: Iterable[Sequence[object]] = KERNELS,
    copies: Iterable[Sequence[object]] = COPIES,
    calls: Iterable[Sequence[object]] = CALLS,
    ranges: Iterable[Sequence[object]] = RANGES,
    nvtx: str = "both",
    nvtx_table: str = "NVTX_EVENTS",
    gpu_table: str | None = "TARGET_INFO_GPU",
    name_column: str = "demangledName",
    graph_nodes: Sequence[int | None] | None = None,
    leave_out: Iterable[str] = (),
    pid: int = 77,
) -> Path:
    """An export with the tables and columns named; ``nvtx`` is "text", "textId" or "both" (each range in one of them)."""
    connection = sqlite3.connect(path)
    strings: dict[str, int] = {}

    def string(text: object) -> int:
        return strings.setdefault(str(text), len(strings) + 5)

    process = pid << 24
    skip = set(leave_out)
    connection.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
    connection.execute("CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT)")
    if "CUPTI_ACTIVITY_KIND_KERNEL" not in skip:
        graph = ", graphNodeId INTEGER" if graph_nodes is not None else ""
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
            f"correlationId INTEGER, globalPid INTEGER, {name_column} INTEGER, registersPerThread INTEGER, gridX INTEGER, "
            "gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, "
            f"dynamicSharedMemory INTEGER{graph})"
        )
        for index, (start, end, device, stream, correlation, name) in enumerate(kernels):
            row = [start, end, device, stream, correlation, process, string(name), 64, 10 + index, 2, 1, 128, 1, 1, 16, 32]
            row += [graph_nodes[index]] if graph_nodes is not None else []
            connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({','.join('?' * len(row))})", row)
    if "CUPTI_ACTIVITY_KIND_MEMCPY" not in skip:
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
            "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER)"
        )
        for start, end, device, stream, correlation, size, kind in copies:
            values = (start, end, device, stream, correlation, process, size, kind)
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,?)", values)
    if "CUPTI_ACTIVITY_KIND_RUNTIME" not in skip:
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
            "correlationId INTEGER, nameId INTEGER)"
        )
        for start, end, thread, correlation, name in calls:
            call = (start, end, process | int(str(thread)), correlation, string(name))
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?)", call)
    if "NVTX" not in skip:
        columns = {"text": "text TEXT", "textId": "textId INTEGER", "both": "text TEXT, textId INTEGER"}[nvtx]
        connection.execute(f"CREATE TABLE {nvtx_table} (start INTEGER, end INTEGER, globalTid INTEGER, {columns})")
        for index, (start, end, thread, name) in enumerate(ranges):
            own = {"text": [name], "textId": [string(name)]}.get(nvtx)
            if own is None:
                own = [name, None] if index % 2 else [None, string(name)]
            marks = ",".join("?" * (3 + len(own)))
            connection.execute(f"INSERT INTO {nvtx_table} VALUES ({marks})", [start, end, process | int(str(thread)), *own])
    if gpu_table:
        connection.execute(f"CREATE TABLE {gpu_table} (id INTEGER, name TEXT)")
        connection.execute(f"INSERT INTO {gpu_table} VALUES (0, 'NVIDIA H200'), (1, 'NVIDIA H200')")
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(key, text) for text, key in strings.items()])
    connection.commit()
    connection.close()
    return path


ODD = {"stream": "x", "bytes": "12", "l": [{}, {}]}
"""What other events keep under the keys that a kernel has a number for."""


def chrome_event(category: str, name: str, start_ns: int, length_ns: int, **arguments: object) -> dict[str, object]:
    """A complete event; times go out as the decimal microseconds that kineto writes."""
    own: dict[str, object] = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7}
    return {**own, "ts": start_ns / 1000, "dur": length_ns / 1000, "args": arguments}


def chrome_events() -> list[dict[str, object]]:
    """The same activity as the nsys file has, with the events around it that a profiler also writes."""
    events: list[dict[str, object]] = [
        {"name": "process_name", "ph": "M", "ts": 1.0, "pid": 9, "tid": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "Trace", "ts": 1, "dur": 9, "pid": "Spans", "tid": "PyTorch Profiler", "name": "P", "args": {}},
        {"ph": "X", "cat": "cpu_op", "name": "a}, {b", "pid": 9, "tid": 9, "ts": 2, "dur": 1, "args": ODD},
    ]
    for index, (start, end, device, stream, correlation, name) in enumerate(KERNELS):
        events.append(
            chrome_event(
                "kernel",
                name,
                start,
                end - start,
                device=device,
                stream=stream,
                correlation=correlation,
                grid=[10 + index, 2, 1],
                block=[128, 1, 1],
                **{"registers per thread": 64, "shared memory": 48},
            )
        )
    for start, end, device, stream, correlation, size, kind in COPIES:
        word = "HtoD (Pageable -> Device)" if kind == 1 else "DtoH (Device -> Pinned)"
        events.append(
            chrome_event(
                "gpu_memcpy",
                f"Memcpy {word}",
                start,
                end - start,
                device=device,
                stream=stream,
                correlation=correlation,
                bytes=size,
            )
        )
    for start, end, _, correlation, name in CALLS:
        events.append(chrome_event("cuda_runtime", name, start, end - start, correlation=correlation))
    for start, end, _, name in RANGES[:2]:
        events.append(chrome_event("user_annotation", name, start, (end or 0) - start))
    return events


def chrome_json(
    path: Path, events: list[dict[str, object]] | None = None, *, indent: int | None = None, packed: bool = False
) -> Path:
    """A whole kineto file, pretty-printed or not, gzip or not."""
    whole = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "NVIDIA H200"}],
        "traceEvents": chrome_events() if events is None else events,
        "traceName": "t.json",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1751410836000000000,
    }
    text = json.dumps(whole, indent=indent)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


def cupti_tsv(path: Path, *, packed: bool = True) -> Path:
    """Device 0 of KERNELS and COPIES in the tab separated form."""
    lines = ["kind\tstart_ns\tend_ns\tgrid_x_or_bytes\tgrid_y_or_copy_kind\tgrid_z\tblock_x\tcorrelation_id\tmangled_name"]
    for start, end, _, _, _, size, kind in COPIES:
        lines.append(f"M\t{start}\t{end}\t{size}\t{kind}")
    for start, end, device, _, correlation, name in KERNELS:
        if device == 0:
            lines.append(f"K\t{start}\t{end}\t10\t2\t1\t128\t{correlation}\t{name}")
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path
