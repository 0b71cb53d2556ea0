"""Nsight Systems' ``nsys export --type sqlite``, every schema since 2021.

Tables are made only when they hold something, so each may be missing, and columns come and go between versions: what is
there is found in the schema, never assumed.
Schema: https://docs.nvidia.com/nsight-systems/UserGuide/index.html (SQLite schema reference).
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from ..events import ApiCalls, Copies, Int32, Int64, Launches, Ranges, Trace, TraceError
from .columns import Names, check_times, usable
from .processes import Processes
from .sqlite_columns import ABSENT, Database, bound_work, check_complete

FORMAT = "nsys sqlite"
MAGIC = b"SQLite format 3\x00"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
API_TABLES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
KERNEL_NAMES = ("demangledName", "shortName", "mangledName", "nameId")
COPY_KINDS = (
    "unknown", "host to device", "device to host", "host to array", "array to host", "array to array", "array to device",
    "device to array", "device to device", "host to host", "peer to peer", "unified host to device",
    "unified device to host", "unified device to device", "memset",
)  # fmt: skip
"""The first 14 are CUpti_ActivityMemcpyKind by value (https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html)."""
MEMSET_KIND = 14


def read(path: Path, *, with_ranges: bool = True) -> Trace:
    """All device activity, API calls and NVTX ranges of an export. Raises TraceError.

    Ranges are host text, often one spelling a call, and only a window needs them: ``with_ranges`` false leaves them unread.
    """
    check_complete(path)
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            bound_work(connection, path.stat().st_size)
            return _read(connection, path, with_ranges)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise TraceError(f"{path}: not a whole SQLite file ({error}); export it again with nsys export") from error


def _read(connection: sqlite3.Connection, path: Path, with_ranges: bool) -> Trace:
    found = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables = {name: tuple(row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')) for name in found}
    database = Database(connection, path, tables)
    if not any(name.startswith(("CUPTI_ACTIVITY_KIND_", "NVTX_", "TARGET_INFO_", "META_DATA_")) for name in tables):
        seen = ", ".join(sorted(tables)[:4]) or "no table"
        raise TraceError(f"{path}: an SQLite file that nsys did not write (seen: {seen}); export one with nsys export")
    strings: dict[int, str] = {}
    if database.has("StringIds", "id", "value"):
        strings = {row[0]: str(row[1]) for row in connection.execute("SELECT id, value FROM StringIds")}
    names, notes = Names(), list[str]()
    processes = Processes(database)
    launches = _launches(database, strings, names, processes, notes)
    copies = _copies(database, processes)
    if launches is None:
        notes.append(f"no table {KERNELS}: no GPU kernel was recorded (was the trace taken with -t cuda?)")
    return Trace(
        source_format=FORMAT,
        launches=launches if launches is not None else _no_launches(),
        copies=copies,
        api_calls=_api_calls(database, strings, names, processes, notes),
        ranges=_ranges(database, bool(strings), names) if with_ranges else None,
        names=names.table(),
        copy_kinds=COPY_KINDS if copies is not None else (),
        device_names=_device_names(database),
        notes=tuple(notes),
    )


def _launches(
    database: Database, strings: dict[int, str], names: Names, processes: Processes, notes: list[str]
) -> Launches | None:
    if not database.has(KERNELS):
        return _graph_launches(database, names, processes, notes)
    needed = ("start", "end", "deviceId", "streamId")
    name_column = database.first(KERNELS, KERNEL_NAMES)
    missing = [column for column in needed if not database.has(KERNELS, column)]
    if missing or name_column is None:
        raise TraceError(f"{database.path}: {KERNELS} has no column {(missing or ['demangledName'])[0]}; export it again")
    optional = ("correlationId", "globalPid", "graphNodeId", "registersPerThread")
    wanted = [*needed, name_column, *(column for column in optional if database.has(KERNELS, column))]
    shapes = [f"{kind}{axis}" for kind in ("grid", "block") for axis in "XYZ"]
    shaped = database.has(KERNELS, *shapes)
    memory = database.has(KERNELS, "staticSharedMemory", "dynamicSharedMemory")
    expressions = [f'"{column}"' for column in wanted + (shapes if shaped else [])]
    expressions += ['"staticSharedMemory" + "dynamicSharedMemory"'] if memory else []
    columns = database.read(KERNELS, expressions)
    by_name = dict(zip(wanted, columns, strict=False))
    start, end = by_name["start"], by_name["end"]
    check_times(*_collected(start, end, "kernel records", database.path), "kernel records", database.path)
    graph_node = by_name.get("graphNodeId")
    if graph_node is not None and not (graph_node >= 0).any():
        graph_node = None
    shape = columns[len(wanted) : len(wanted) + 6] if shaped else None
    launches = Launches(
        start=start,
        end=end,
        name=_resolve(by_name[name_column], strings, names),
        device=processes.devices(by_name["deviceId"], by_name.get("globalPid")),
        stream=by_name["streamId"],
        correlation=_optional(by_name.get("correlationId"), by_name.get("globalPid"), processes),
        graph_node=graph_node,
        grid=np.stack(shape[:3], axis=1).astype(np.int32) if shape else None,
        block=np.stack(shape[3:], axis=1).astype(np.int32) if shape else None,
        registers=by_name["registersPerThread"].astype(np.int32) if "registersPerThread" in by_name else None,
        shared_memory=columns[-1] if memory else None,
    )
    graphs = _graph_launches(database, names, processes, notes) if graph_node is None else None
    return launches if graphs is None else _with_graphs(launches, graphs)


def _graph_launches(database: Database, names: Names, processes: Processes, notes: list[str]) -> Launches | None:
    """Whole-graph records, which nsys makes instead of one record a kernel under --cuda-graph-trace=graph."""
    if not database.has(GRAPHS, "start", "end", "deviceId", "streamId"):
        return None
    optional = [column for column in ("correlationId", "globalPid") if database.has(GRAPHS, column)]
    start, end, device, stream, *rest = database.read(GRAPHS, ['"start"', '"end"', '"deviceId"', '"streamId"', *optional])
    check_times(*_collected(start, end, "graph records", database.path), "graph records", database.path)
    by_name = dict(zip(optional, rest, strict=True))
    if len(start):
        notes.append(
            f"{len(start):,} CUDA graph launches were recorded whole, so their kernels are unknown; record with "
            "--cuda-graph-trace=node to see them"
        )
    return Launches(
        start=start,
        end=end,
        name=np.repeat(names.ids(["[CUDA graph recorded whole]"]), len(start)),
        device=processes.devices(device, by_name.get("globalPid")),
        stream=stream,
        correlation=_optional(by_name.get("correlationId"), by_name.get("globalPid"), processes),
    )


def _with_graphs(kernels: Launches, graphs: Launches) -> Launches:
    if not len(graphs):
        return kernels
    correlation = None
    if kernels.correlation is not None and graphs.correlation is not None:
        correlation = np.concatenate([kernels.correlation, graphs.correlation])
    return Launches(
        start=np.concatenate([kernels.start, graphs.start]),
        end=np.concatenate([kernels.end, graphs.end]),
        name=np.concatenate([kernels.name, graphs.name]),
        device=np.concatenate([kernels.device, graphs.device]),
        stream=np.concatenate([kernels.stream, graphs.stream]),
        correlation=correlation,
    )


def _copies(database: Database, processes: Processes) -> Copies | None:
    parts: list[Copies] = []
    for table, kind in ((MEMCPY, '"copyKind"'), (MEMSET, str(MEMSET_KIND))):
        if not database.has(table, "start", "end", "deviceId", "streamId", "bytes"):
            continue
        if table == MEMCPY and not database.has(table, "copyKind"):
            kind = "0"
        optional = [column for column in ("correlationId", "globalPid") if database.has(table, column)]
        start, end, device, stream, size, kinds, *rest = database.read(
            table, ['"start"', '"end"', '"deviceId"', '"streamId"', '"bytes"', kind, *optional]
        )
        check_times(*_collected(start, end, "copy records", database.path), "copy records", database.path)
        by_name = dict(zip(optional, rest, strict=True))
        correlation = _optional(by_name.get("correlationId"), by_name.get("globalPid"), processes)
        parts.append(
            Copies(
                start=start,
                end=end,
                device=processes.devices(device, by_name.get("globalPid")),
                stream=stream,
                kind=np.where((kinds >= 0) & (kinds <= MEMSET_KIND), kinds, 0).astype(np.int32),
                bytes=size,
                correlation=correlation if correlation is not None else np.full(len(start), ABSENT, dtype=np.int64),
            )
        )
    if not parts:
        return None
    return Copies(
        start=np.concatenate([part.start for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        device=np.concatenate([part.device for part in parts]),
        stream=np.concatenate([part.stream for part in parts]),
        kind=np.concatenate([part.kind for part in parts]),
        bytes=np.concatenate([part.bytes for part in parts if part.bytes is not None]),
        correlation=np.concatenate([part.correlation for part in parts if part.correlation is not None]),
    )


def _api_calls(
    database: Database, strings: dict[int, str], names: Names, processes: Processes, notes: list[str]
) -> ApiCalls | None:
    parts: list[tuple[Int64, Int64, Int32, Int64, Int64]] = []
    for table in API_TABLES:
        if not database.has(table, "start", "end", "nameId"):
            continue
        optional = [column for column in ("globalTid", "correlationId") if database.has(table, column)]
        start, end, name, *rest = database.read(table, ['"start"', '"end"', '"nameId"', *optional])
        by_name = dict(zip(optional, rest, strict=True))
        thread = by_name.get("globalTid", np.full(len(start), ABSENT, dtype=np.int64))
        correlation = by_name.get("correlationId", np.full(len(start), ABSENT, dtype=np.int64))
        if "globalTid" in by_name:
            correlation = processes.correlations(correlation, thread)
        keep = usable(start, end)
        if not keep.all():
            notes.append(f"{int((~keep).sum()):,} API calls without usable times were left out")
        parts.append((start[keep], end[keep], _resolve(name[keep], strings, names), thread[keep], correlation[keep]))
    if not parts:
        notes.append("no API calls were recorded: the cause of gaps is unknown")
        return None
    start, end, ids, thread, correlation = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ApiCalls(start=start, end=end, name=ids.astype(np.int32), thread=thread, correlation=correlation)


def _ranges(database: Database, strings: bool, names: Names) -> Ranges | None:
    """NVTX push/pop and start/end ranges, from whichever table this version keeps them in."""
    parts: list[tuple[Int64, Int64, Int32, Int64]] = []
    for table in sorted(database.tables):
        texts = [column for column in ("text", "textId") if database.has(table, column)]
        if not (table.startswith("NVTX") and texts and database.has(table, "start", "end")):
            continue
        thread = '"globalTid"' if database.has(table, "globalTid") else str(ABSENT)
        registered = '(SELECT value FROM StringIds WHERE id = "textId")' if "textId" in texts and strings else "NULL"
        own = '"text"' if "text" in texts else "NULL"
        closed = 'ifnull("end", 0) > 0'
        start, end, tid = database.read(table, ['"start"', '"end"', thread], closed)
        spelt = database.texts(table, f"coalesce({own}, {registered})", closed)
        named = np.array([text is not None for text in spelt], dtype=bool)
        ids = names.ids("" if text is None else str(text) for text in spelt)
        keep = usable(start, end) & named
        parts.append((start[keep], end[keep], ids[keep], tid[keep]))
    if not parts:
        return None
    start, end, ids, tid = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ranges(start=start, end=end, name=ids.astype(np.int32), thread=tid)


def _device_names(database: Database) -> dict[int, str]:
    for table in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"):
        if database.has(table, "id", "name"):
            rows = database.connection.execute(f"SELECT id, name FROM {table} WHERE name IS NOT NULL")
            return {int(row[0]): str(row[1]) for row in rows}
    return {}


def _optional(correlation: Int64 | None, global_id: Int64 | None, processes: Processes) -> Int64 | None:
    return None if correlation is None else processes.correlations(correlation, global_id)


def _resolve(ids: Int64, strings: dict[int, str], names: Names) -> Int32:
    unique, which = np.unique(ids, return_inverse=True)
    spellings = [strings.get(key, f"[string {key} missing]") for key in unique.tolist()]
    return names.ids(spellings)[which] if len(unique) else np.zeros(0, dtype=np.int32)


def _collected(start: Int64, end: Int64, what: str, path: Path) -> tuple[Int64, Int64]:
    absent = int(((start == ABSENT) | (end == ABSENT)).sum())
    if absent:
        raise TraceError(f"{path}: {absent:,} of {len(start):,} {what} have no start or end (NULL or NaN); export it again")
    return start, end


def _no_launches() -> Launches:
    empty = np.zeros(0, dtype=np.int64)
    return Launches(empty, empty, empty.astype(np.int32), empty.astype(np.int32), empty)
