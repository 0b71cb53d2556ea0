"""nsys exports: every schema drift that was seen gives the same activity, and what is broken gives one line."""

import sqlite3

import numpy as np
import pytest

from benchmarks.attribution.events import TraceError
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.ingest.sqlite_columns import bound_work
from tests.benchmarks.attribution.ingest.builders import KERNELS, RANGES, T0, nsys_sqlite
from tests.shared_files import shared_file

SCHEMAS = {
    "2021: names in text, older GPU table": {"nvtx": "text", "gpu_table": "TARGET_INFO_CUDA_GPU"},
    "registered strings only": {"nvtx": "textId"},
    "both": {"nvtx": "both"},
    "renamed NVTX table": {"nvtx_table": "NVTX_PUSHPOP_EVENTS"},
    "no GPU table": {"gpu_table": None},
    "graph nodes": {"graph_nodes": (11, 12, None, None)},
    "short names only": {"name_column": "shortName"},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_every_schema_gives_the_same_activity(tmp_path, schema):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", **schema))
    launches, copies, ranges = trace.launches, trace.copies, trace.ranges
    rows = zip(launches.start, launches.end, launches.device, launches.stream, launches.name, strict=True)
    assert [(s, e, d, q, trace.names[n]) for s, e, d, q, n in rows] == [(s, e, d, q, n) for s, e, d, q, _, n in KERNELS]
    assert launches.grid.tolist() == [[10, 2, 1], [11, 2, 1], [12, 2, 1], [13, 2, 1]]
    assert launches.block[0].tolist() == [128, 1, 1]
    assert launches.shared_memory.tolist() == [48] * 4
    assert copies.bytes.tolist() == [4096, 1024]
    assert [trace.copy_kinds[kind] for kind in copies.kind] == ["host to device", "device to host"]
    assert [(s, e, trace.names[n]) for s, e, n in zip(ranges.start, ranges.end, ranges.name, strict=True)] == [
        (start, end, name) for start, end, _, name in RANGES if end is not None
    ]
    calls = trace.api_calls
    # Kernel 3 (correlation 3) was launched by the call that began 50 ns before it.
    call = np.flatnonzero(calls.correlation == launches.correlation[2])
    assert calls.start[call].tolist() == [T0 + 350]
    assert trace.device_names == ({} if schema.get("gpu_table", "") is None else {0: "NVIDIA H200", 1: "NVIDIA H200"})


def test_graph_nodes_are_read_and_absent_ones_are_minus_one(tmp_path):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", graph_nodes=(11, 12, None, None)))
    assert trace.launches.graph_node.tolist() == [11, 12, -1, -1]
    assert open_trace(nsys_sqlite(tmp_path / "u.sqlite", graph_nodes=(None,) * 4)).launches.graph_node is None


@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX"])
def test_a_missing_table_is_a_missing_column_not_a_zero(tmp_path, table):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", leave_out=[table]))
    assert len(trace.launches) == 4
    kept = {"CUPTI_ACTIVITY_KIND_MEMCPY": trace.copies, "CUPTI_ACTIVITY_KIND_RUNTIME": trace.api_calls, "NVTX": trace.ranges}
    assert kept[table] is None
    assert all(value is not None for name, value in kept.items() if name != table)


def test_no_kernel_table_is_said_and_is_no_idle_gpu(tmp_path):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", leave_out=["CUPTI_ACTIVITY_KIND_KERNEL"]))
    assert len(trace.launches) == 0
    assert any("no GPU kernel was recorded" in note for note in trace.notes)


def test_graphs_recorded_whole_count_as_time_of_unknown_kernels(tmp_path):
    path = nsys_sqlite(tmp_path / "t.sqlite")
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
        "correlationId INTEGER, globalPid INTEGER, graphId INTEGER)"
    )
    connection.execute(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES ({T0 + 2000}, {T0 + 2500}, 0, 7, 9, {77 << 24}, 1)"
    )
    connection.commit()
    connection.close()
    trace = open_trace(path)
    assert len(trace.launches) == 5
    assert trace.names[trace.launches.name[4]] == "[CUDA graph recorded whole]"
    assert any("--cuda-graph-trace=node" in note for note in trace.notes)


def test_two_processes_share_neither_correlation_ids_nor_device_numbers(tmp_path):
    path = nsys_sqlite(tmp_path / "t.sqlite", kernels=KERNELS[:1], calls=[(T0 - 50, T0 - 40, 1, 1, "cudaLaunchKernel")])
    connection = sqlite3.connect(path)
    other = 88 << 24
    row = f"{T0 + 5000}, {T0 + 5100}, 0, 7, 1, {other}, 5, 64, 1, 1, 1, 1, 1, 1, 0, 0"
    connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({row})")
    connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({T0 + 4000}, {T0 + 4010}, {other | 3}, 1, 6)")
    connection.execute("CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER)")
    connection.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 77), (3, 0, 88)")
    connection.commit()
    connection.close()
    trace = open_trace(path)
    assert trace.launches.device.tolist() == [0, 3]
    ids = trace.launches.correlation.tolist()
    assert ids[0] != ids[1]
    starts = [trace.api_calls.start[trace.api_calls.correlation == key].tolist() for key in ids]
    assert starts == [[T0 - 50], [T0 + 4000]]


def test_blocks_of_rows_join_in_order(tmp_path, monkeypatch):
    whole = open_trace(nsys_sqlite(tmp_path / "t.sqlite"))
    monkeypatch.setattr("benchmarks.attribution.ingest.sqlite_columns.BLOCK_ROWS", 3)
    parts = open_trace(tmp_path / "t.sqlite")
    assert parts.launches.start.tolist() == whole.launches.start.tolist()
    assert parts.launches.grid.tolist() == whole.launches.grid.tolist()


def _with_time(start, end):
    return [(start, end, 0, 7, 1, "k"), *KERNELS[1:]]


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        (_with_time(0, 0), "1 of 4 kernel records have timestamp 0"),
        (_with_time(0, T0 + 5), "1 of 4 kernel records have timestamp 0"),
        (_with_time(T0 + 9, T0 + 5), "1 of 4 kernel records end before they start"),
        (_with_time(None, T0 + 5), "1 of 4 kernel records have no start or end (NULL or NaN)"),
        (_with_time(float("nan"), T0 + 5), "1 of 4 kernel records have no start or end (NULL or NaN)"),
        (_with_time("soon", T0 + 5), "is not an integer"),
        (_with_time(1.5, T0 + 5), "is not an integer"),
    ],
)
def test_impossible_times_are_refused_in_one_line(tmp_path, kernels, expected):
    with pytest.raises(TraceError) as error:
        open_trace(nsys_sqlite(tmp_path / "t.sqlite", kernels=kernels))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_host_events_without_usable_times_are_left_out_and_counted(tmp_path):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", calls=[(0, 0, 1, 1, "cudaLaunchKernel"), (T0, T0 + 5, 1, 2, "x")]))
    assert len(trace.api_calls) == 1
    assert any("1 API calls without usable times" in note for note in trace.notes)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_cut_file_is_refused(tmp_path, share):
    path = nsys_sqlite(tmp_path / "t.sqlite")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(TraceError, match="cut"):
        open_trace(path)


def test_a_database_that_nsys_did_not_write_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "t.sqlite")
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(TraceError, match="nsys did not write"):
        open_trace(tmp_path / "t.sqlite")


def test_a_kernel_table_without_a_needed_column_is_refused(tmp_path):
    path = nsys_sqlite(tmp_path / "t.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId")
    connection.commit()
    connection.close()
    with pytest.raises(TraceError, match="has no column streamId"):
        open_trace(path)


@pytest.mark.parametrize(
    ("name", "device", "count"),
    [
        ("nsys_h100_2gpu_1s.sqlite", 0, 1721),
        ("nsys_h100_2gpu_1s.sqlite", 1, 1721),
        ("nsys_mfu_2gpu_before.sqlite", 0, 1993),
        ("nsys_mfu_2gpu_after.sqlite", 1, 1794),
        ("nsys_rtx3080.sqlite", 0, 2),
    ],
)
def test_real_exports_agree_with_plain_sql(name, device, count):
    path = shared_file("traces", name)
    launches = open_trace(path).launches
    rows = launches.device == device
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    query = "SELECT count(*), sum(end - start), min(start), max(end), sum(gridX), sum(correlationId) "
    expected = connection.execute(f"{query} FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = {device}").fetchone()
    connection.close()
    assert expected[0] == count
    assert (
        int(rows.sum()),
        int((launches.end - launches.start)[rows].sum()),
        int(launches.start[rows].min()),
        int(launches.end[rows].max()),
        int(launches.grid[rows, 0].sum()),
    ) == expected[:5]


def test_copies_of_the_real_export_dominate():
    trace = open_trace(shared_file("traces", "nsys_h100_2gpu_1s.sqlite"))
    rows = (trace.copies.device == 0) & (trace.copies.kind == trace.copy_kinds.index("host to device"))
    assert int((trace.copies.end - trace.copies.start)[rows].sum()) == 920_872_841


def test_rows_whose_ids_have_wide_gaps_are_read(tmp_path, monkeypatch):
    path = nsys_sqlite(tmp_path / "t.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = 1 << 60 WHERE rowid = 4")
    connection.commit()
    connection.close()
    monkeypatch.setattr("benchmarks.attribution.ingest.sqlite_columns.BLOCK_ROWS", 2)
    assert open_trace(path).launches.start.tolist() == [row[0] for row in KERNELS]


def test_ranges_are_left_unread_where_no_window_needs_them(tmp_path):
    path = nsys_sqlite(tmp_path / "t.sqlite")
    assert open_trace(path, with_ranges=False).ranges is None
    assert open_trace(path).ranges is not None


def test_a_query_that_goes_round_in_a_circle_is_stopped():
    connection = sqlite3.connect(":memory:")
    bound_work(connection, 1000)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute("WITH RECURSIVE g(i) AS (SELECT 0 UNION ALL SELECT 1 - i FROM g) SELECT sum(i) FROM g").fetchone()
