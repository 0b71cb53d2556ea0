"""The answer of each format, and of each real file the figures that hold for it, found again by plain sweeps."""

import gzip
import json
import sqlite3
from decimal import Decimal

import pytest

from benchmarks.attribution.answer_json import to_json
from benchmarks.attribution.attribute import attribute
from benchmarks.attribution.events import TraceError
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.windows import choose
from tests.benchmarks.attribution.ingest import text_builders as text
from tests.benchmarks.attribution.ingest.builders import KERNELS, T0, chrome_json, nsys_sqlite
from tests.shared_files import shared_file


def answer(path, *, device=None, **window):
    trace = open_trace(path)
    return to_json(attribute(trace, str(path), choose(trace, **window), device=device))


def union(intervals):
    """Total length of the union: a sweep over sorted intervals, one at a time."""
    total, reach = 0, None
    for start, end in sorted(intervals):
        if reach is None or start > reach:
            total += end - start
            reach = end
        elif end > reach:
            total += end - reach
            reach = end
    return total


@pytest.mark.parametrize("build", [nsys_sqlite, chrome_json])
def test_the_object_of_a_timeline(tmp_path, build):
    out = answer(build(tmp_path / "t"))
    assert set(out) >= {"format", "window", "checks", "devices"}
    assert set(out["devices"]) == {"0", "1"}
    first = out["devices"]["0"]
    assert first["kernels"] == 3
    assert (first["summed_ns"], first["busy_ns"], first["span_ns"], first["wall_ns"]) == (800, 750, 1000, 1000)
    # 200..300 is copied while no kernel runs; 600..650 runs beside a kernel.
    assert (first["copy_ns"], first["copies_summed_ns"]) == (100, 150)
    assert sum(first["gap_ns"].values()) == 1000 - 750 - 100
    assert sum(row["ns"] for row in first["classes"]) == 750
    rows = {row["name"]: row for row in first["classes"]}
    assert (rows["q6_K GEMM"]["ns"], rows["attention"]["ns"], rows["q4_K GEMM"]["ns"]) == (100, 50, 600)
    assert rows["q4_K GEMM"]["share_of_busy"] == pytest.approx(0.8)
    assert rows["q4_K GEMM"]["gmac"] is None
    assert rows["q4_K GEMM"]["us_per_gmac"] is None
    assert out["window"]["kind"] == "whole trace"
    assert json.loads(json.dumps(out, allow_nan=False)) == out


def test_the_gap_before_the_late_call_is_the_hosts(tmp_path):
    # Device 0 is idle from 300 to 400; the call for the next kernel began at 350: the host was late.
    gap = answer(nsys_sqlite(tmp_path / "t"))["devices"]["0"]["gap_ns"]
    assert gap == {"host-late": 100, "queued": 0, "unknown": 50}


def test_one_device_and_a_span(tmp_path):
    out = answer(nsys_sqlite(tmp_path / "t"), device=0, span=f"{T0 + 50}:{T0 + 250}")
    (first,) = out["devices"].values()
    assert (first["busy_ns"], first["copy_ns"], first["wall_ns"]) == (100, 50, 200)
    assert first["copies"] == [{"kind": "host to device", "count": 1, "summed_ns": 50, "bytes": 4096}]


@pytest.mark.parametrize("content", [text.csv_text(text.KERN_SUM_HEADER, text.kern_sum_cells())])
def test_sums_leave_unknown_what_they_do_not_know(tmp_path, content):
    (tmp_path / "r").write_text(content)
    (only,) = answer(tmp_path / "r")["devices"].values()
    assert (only["kernels"], only["summed_ns"]) == (25, 1_300_000)
    for key in ("busy_ns", "span_ns", "wall_ns", "copy_ns", "gap_ns"):
        assert only[key] is None
    assert [row["share_of_busy"] for row in only["classes"]] == [None, None]


def test_ncu_is_answered_by_its_device(tmp_path):
    (tmp_path / "r").write_text(text.ncu_text([(0, "gpu__time_duration.sum", "us", "6.75")], "flash_fwd_kernel<int>"))
    out = answer(tmp_path / "r")
    assert out["devices"]["0"]["summed_ns"] == 6750
    assert out["devices"]["0"]["classes"][0]["name"] == "attention"
    assert out["devices"]["0"]["wall_ns"] is None


def test_llama_bench_is_speeds_and_no_device(tmp_path):
    (tmp_path / "r").write_text(text.llama_bench_text("jsonl"))
    out = answer(tmp_path / "r")
    assert out["devices"] == {}
    assert out["bench_results"][0]["tokens_per_second"] == 10039.2


def test_unknown_symbols_fail_a_check_that_names_them(tmp_path):
    kernels = [*KERNELS, (T0 + 2000, T0 + 2900, 0, 7, 9, "my_own_thing_v3")]
    out = answer(nsys_sqlite(tmp_path / "t", kernels=kernels))
    assert out["devices"]["0"]["unclassified"] == ["my_own_thing_v3"]
    (failed,) = [check for check in out["checks"] if check["device"] == "0" and check["name"].startswith("unclassified")]
    assert failed["passed"] is False
    assert "my_own_thing_v3" in failed["detail"]


@pytest.mark.parametrize(
    ("build", "arguments", "expected"),
    [
        (lambda path: nsys_sqlite(path, leave_out=["CUPTI_ACTIVITY_KIND_KERNEL"]), {}, "no GPU activity recorded"),
        (lambda path: nsys_sqlite(path, kernels=[]), {}, "no GPU activity recorded"),
        (lambda path: chrome_json(path, []), {}, "no GPU activity recorded"),
        (nsys_sqlite, {"device": 5}, "no device 5; the trace holds 0, 1"),
        (nsys_sqlite, {"span": f"{T0 + 150}:{T0 + 160}"}, "no kernel ran in span"),
        (nsys_sqlite, {"device": 1, "span": f"{T0}:{T0 + 100}"}, "no GPU activity recorded on device 1"),
    ],
)
def test_nothing_to_attribute_is_refused(tmp_path, build, arguments, expected):
    with pytest.raises(TraceError) as error:
        answer(build(tmp_path / "t"), **arguments)
    assert expected in str(error.value)


def test_sums_cannot_be_cut_to_a_window(tmp_path):
    (tmp_path / "r").write_text(text.csv_text(text.KERN_SUM_HEADER, text.kern_sum_cells()))
    with pytest.raises(TraceError):
        answer(tmp_path / "r", span="0us:1us")


def _kineto(path, *categories):
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    return [
        (int(event["ts"] * 1000), int(event["ts"] * 1000) + int(Decimal(event["dur"]) * 1000))
        for event in events
        if event.get("ph") == "X" and event.get("cat") in categories
    ]


def test_every_kernel_of_the_qwen_trace_counts():
    path = shared_file("traces", "kineto_h100_Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
    (device,) = answer(path)["devices"].values()
    assert device["kernels"] == 1465
    assert device["busy_ns"] == union(_kineto(path, "kernel")) == 45_432_698
    # The figure that is quoted for this file counts the 242 copies and memsets too; with linked launches only it is 31.905.
    active = union(_kineto(path, "kernel", "gpu_memcpy", "gpu_memset"))
    assert device["active_ns"] == device["busy_ns"] + device["copy_ns"] == active == 45_647_300
    assert device["unclassified"] == []


def test_graph_kernels_are_not_collapsed():
    path = shared_file("traces", "kineto_inference_vllm_decode_full_graph_execution.json.gz")
    (device,) = answer(path)["devices"].values()
    assert device["kernels"] == 425
    assert device["busy_ns"] == union(_kineto(path, "kernel")) == 10_674_517


@pytest.mark.parametrize("name", ["kineto_hta_diff_control.json.gz", "kineto_hta_diff_test.json.gz"])
def test_the_trace_diff_pair(name):
    path = shared_file("traces", name)
    (device,) = answer(path)["devices"].values()
    assert device["busy_ns"] == union(_kineto(path, "kernel", "Kernel"))
    assert device["wall_ns"] == sum(row["ns"] for row in device["classes"]) + device["copy_ns"] + sum(
        device["gap_ns"].values()
    )


def _sql(path, device, table="KERNEL", extra=""):
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    query = f"SELECT start, end FROM CUPTI_ACTIVITY_KIND_{table} WHERE deviceId = {device} {extra}"
    rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def test_copies_dominate_the_h100_second():
    path = shared_file("traces", "nsys_h100_2gpu_1s.sqlite")
    device = answer(path, device=0)["devices"]["0"]
    kernels, copies = _sql(path, 0), _sql(path, 0, "MEMCPY") + _sql(path, 0, "MEMSET")
    assert device["busy_ns"] == union(kernels) == 22_385_163
    assert device["span_ns"] == 156_320_780_944 - 155_360_295_935
    assert device["copy_ns"] == union(kernels + copies) - union(kernels)
    assert device["copy_ns"] > 40 * device["busy_ns"]
    to_device = next(row for row in device["copies"] if row["kind"] == "host to device")
    assert to_device["summed_ns"] == 920_872_841


@pytest.mark.parametrize(("name", "flash"), [("nsys_mfu_2gpu_before.sqlite", 68), ("nsys_mfu_2gpu_after.sqlite", 60)])
def test_the_before_and_after_windows_hold_different_work(name, flash):
    path = shared_file("traces", name)
    devices = answer(path)["devices"]
    for number in (0, 1):
        assert devices[str(number)]["busy_ns"] == union(_sql(path, number))
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    count = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName WHERE value LIKE '%flash%'"
    found = [connection.execute(f"{count} AND deviceId = {number}").fetchone()[0] for number in (0, 1)]
    connection.close()
    assert sum(found) == flash
    seen = [
        sum(row["launches"] for row in devices[str(number)]["classes"] if row["name"] == "attention") for number in (0, 1)
    ]
    assert seen == found


def test_the_one_overlap_on_one_stream_is_counted_once():
    overlaps = []
    for name in ("nsys_mfu_2gpu_before.sqlite", "nsys_mfu_2gpu_after.sqlite"):
        path = shared_file("traces", name)
        for number, device in answer(path)["devices"].items():
            streams: dict[int, list[tuple[int, int]]] = {}
            connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
            query = f"SELECT streamId, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = {number}"
            for stream, start, end in connection.execute(query):
                streams.setdefault(stream, []).append((start, end))
            connection.close()
            lost = sum(sum(end - start for start, end in rows) - union(rows) for rows in streams.values())
            overlaps += [lost] if lost else []
            assert device["summed_ns"] - device["busy_ns"] >= lost
    assert [round(ns / 1000, 1) for ns in overlaps] == [12.4]


@pytest.mark.parametrize(
    ("name", "kernels", "busy_us", "span_us"),
    [
        ("h200_llamacpp_nt511_ub512.tsv.gz", 922, 48_114, 48_226),
        ("h200_llamacpp_nt3325_ub4096.tsv.gz", 841, 283_170, 283_218),
        ("h200_llamacpp_nt3325_ub512.tsv.gz", 6416, 322_172, 348_986),
    ],
)
def test_the_timed_run_of_the_llama_cpp_captures(name, kernels, busy_us, span_us):
    path = shared_file("traces", name)
    with gzip.open(path, "rt") as file:
        rows = sorted(tuple(map(int, line.split("\t")[1:3])) for line in file if line.startswith("K\t"))
    timed = rows[len(rows) // 2 :]
    span = f"{timed[0][0]}:{max(end for _, end in timed)}"
    (device,) = answer(path, span=span)["devices"].values()
    assert device["kernels"] == kernels
    assert device["busy_ns"] == union(timed)
    assert (round(device["busy_ns"] / 1000), round(device["span_ns"] / 1000)) == (busy_us, span_us)
    assert device["unclassified"] == []


def test_the_real_sums_have_no_wall():
    path = shared_file("traces", "nsys_cuda_gpu_kern_sum_dsocr.csv")
    (device,) = answer(path)["devices"].values()
    totals = [int(line.split(",")[1]) for line in path.read_text().splitlines()[1:]]
    assert device["summed_ns"] == sum(totals)
    assert device["wall_ns"] is device["busy_ns"] is device["gap_ns"] is None


def test_the_small_rtx_export():
    (device,) = answer(shared_file("traces", "nsys_rtx3080.sqlite"))["devices"].values()
    assert (device["name"], device["kernels"], device["busy_ns"]) == ("NVIDIA GeForce RTX 3080", 2, 4129)
