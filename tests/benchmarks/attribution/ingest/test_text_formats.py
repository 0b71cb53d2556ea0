"""What nsys stats, ncu, llama-bench and a CUPTI dump print: the same values from every layout."""

import gzip
import statistics

import pytest

from benchmarks.attribution.events import TraceError
from benchmarks.attribution.ingest import llama_bench, open_trace
from tests.benchmarks.attribution.ingest import text_builders as text
from tests.benchmarks.attribution.ingest.builders import COPIES, KERNELS, T0, cupti_tsv
from tests.shared_files import shared_file

PREAMBLE = (
    "Generating SQLite file r.sqlite from r.nsys-rep\nProcessing [r.sqlite] with [/opt/reports/cuda_gpu_kern_sum.py]... \n\n"
    " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n"
)
LAYOUTS = {"csv": text.csv_text, "columns": text.columns_text, "box": text.boxed_text}


def _open(tmp_path, content):
    (tmp_path / "report").write_text(content)
    return open_trace(tmp_path / "report")


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("preamble", ["", PREAMBLE])
def test_kernel_sums_from_every_layout(tmp_path, layout, preamble):
    trace = _open(tmp_path, preamble + layout(text.KERN_SUM_HEADER, text.kern_sum_cells()))
    assert trace.launches is None
    assert [(row.total_ns, row.launches, row.name) for row in trace.sums] == list(text.KERN_SUM_ROWS)
    assert any("wall are unknown" in note for note in trace.notes)


def test_kernel_sums_among_other_reports_and_under_the_names_of_2021(tmp_path):
    other = text.csv_text(("Time(%)", "Total Time (ns)", "Num Calls", "Name"), [("50.0", "7", "1", "cudaMalloc")])
    sums = text.csv_text(("Time(%)", "Total Time (ns)", "Instances", "Average", "Name"), text.kern_sum_cells())
    copies = text.csv_text(("Time(%)", "Total Time (ns)", "Count", "Operation"), [("50.0", "7", "1", "[CUDA memset]")])
    trace = _open(tmp_path, f"{other}\n{sums}\n{copies}")
    assert [row.total_ns for row in trace.sums] == [1_234_567, 65_433]


def test_kernel_sums_in_another_unit(tmp_path):
    trace = _open(
        tmp_path, text.csv_text(("Time (%)", "Total Time (ms)", "Instances", "Name"), [("1", "1.234567", "2", "k")])
    )
    assert trace.sums[0].total_ns == 1_234_567


@pytest.mark.parametrize(
    "content",
    [
        text.csv_text(text.KERN_SUM_HEADER, []),
        "Processing [r.sqlite] with [x]...\nSKIPPED: r.sqlite does not contain CUDA kernel data.\n",
        text.csv_text(text.GPU_TRACE_HEADER, []),
    ],
)
def test_an_empty_report_says_that_nothing_was_recorded(tmp_path, content):
    trace = _open(tmp_path, content)
    assert not trace.sums
    assert not (trace.launches and len(trace.launches))
    assert any("no GPU activity was recorded" in note for note in trace.notes)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_gpu_trace_from_every_layout(tmp_path, layout):
    trace = _open(tmp_path, layout(text.GPU_TRACE_HEADER, text.gpu_trace_rows()))
    launches, copies = trace.launches, trace.copies
    rows = zip(
        launches.start, launches.end, launches.device, launches.stream, launches.correlation, launches.name, strict=True
    )
    assert [(s, e, d, q, c, trace.names[n]) for s, e, d, q, c, n in rows] == list(KERNELS)
    assert launches.grid.tolist()[3] == [13, 2, 1]
    assert copies.bytes.tolist() == [row[5] for row in COPIES]
    assert [trace.copy_kinds[kind] for kind in copies.kind] == ["host to device", "device to host"]
    assert trace.device_names == {0: "NVIDIA H200", 1: "NVIDIA H200"}


def test_gpu_trace_in_seconds_is_exact(tmp_path):
    header = ("Start(sec)", "Duration(sec)", *text.GPU_TRACE_HEADER[2:])
    trace = _open(tmp_path, text.csv_text(header, text.gpu_trace_rows(10**9)))
    assert trace.launches.start.tolist() == [row[0] for row in KERNELS]
    assert trace.launches.end.tolist() == [row[1] for row in KERNELS]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (text.csv_text(text.KERN_SUM_HEADER, [("1", "many", "2", "1", "k")]), "no number"),
        (text.csv_text(text.KERN_SUM_HEADER, [("1", "5", "2")]), "does not fit the header"),
        (text.csv_text(text.KERN_SUM_HEADER, [("1", "-5", "2", "1", "k")]), "negative time"),
        (text.csv_text((*text.KERN_SUM_HEADER, "Name"), [("1", "5", "2", "1", "k", "k")]), "'Name' occurs 2 times"),
        (text.csv_text(text.KERN_SUM_HEADER, [("1", "nan", "2", "1", "k")]), "no number"),
        (text.csv_text(("Time (%)", "Total Time (parsec)", "Instances", "Name"), [("1", "5", "2", "k")]), "unknown unit"),
        (text.csv_text(text.GPU_TRACE_HEADER, [("5", "-1", *[""] * 18, "k")]), "end before they start"),
        (text.csv_text(text.GPU_TRACE_HEADER, [("0", "0", *[""] * 18, "k")]), "timestamp 0"),
        (text.csv_text(text.GPU_TRACE_HEADER, [("", "5", *[""] * 18, "k")]), "is empty in 1 rows"),
    ],
)
def test_broken_reports_are_refused_in_one_line(tmp_path, content, expected):
    with pytest.raises(TraceError) as error:
        _open(tmp_path, content)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_ncu_metrics_join_into_one_profile_a_kernel(tmp_path):
    trace = _open(
        tmp_path,
        text.ncu_text(
            [
                (0, "dram__bytes_read.sum", "Mbyte", "2.33"),
                (0, "dram__bytes_write.sum", "Kbyte", "1,024.5"),
                (0, "gpu__time_duration.sum", "us", "6.75"),
                (0, "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "19.66"),
                (0, "flop_count_hp.sum", "", "n/a"),
                (1, "gpu__time_duration.sum", "nsecond", "250"),
                (2, "Duration", "msecond", "1.5"),
            ]
        ),
    )
    first, second, third = trace.profiles
    assert (first.duration_ns, first.bytes_read, first.bytes_written) == (6750, 2_330_000, 1_024_500)
    assert first.bytes_per_second == pytest.approx(3_354_500 / 6.75e-6)
    assert first.grid == (224, 1, 1)
    assert first.percent_of_peak == {"dram__throughput.avg.pct_of_peak_sustained_elapsed": 19.66}
    assert (second.duration_ns, second.bytes_read, second.bytes_per_second) == (250, None, None)
    assert third.duration_ns == 1_500_000
    assert [(row.launches, row.total_ns) for row in trace.sums] == [(3, 6750 + 250 + 1_500_000)]
    assert trace.launches is None


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ((0, "gpu__time_duration.sum", "fortnight", "1"), "a duration in unit 'fortnight'"),
        ((0, "gpu__time_duration.sum", "us", "0"), "not collected"),
        ((0, "gpu__time_duration.sum", "us", "nan"), "no number"),
        ((0, "dram__bytes_read.sum", "sector", "1"), "in unit 'sector'"),
    ],
)
def test_ncu_values_that_cannot_be_are_refused(tmp_path, metric, expected):
    with pytest.raises(TraceError, match=expected):
        _open(tmp_path, text.ncu_text([metric]))


def test_ncu_wide_form_is_refused_with_the_command(tmp_path):
    with pytest.raises(TraceError, match="--csv --page details"):
        _open(tmp_path, '"ID","Process ID","Kernel Name","gpu__time_duration.sum"\n"","","","us"\n"0","1","k","5"\n')


@pytest.mark.parametrize("dialect", ["json", "jsonl", "csv", "sql", "markdown"])
def test_llama_bench_in_every_dialect(tmp_path, dialect):
    trace = _open(tmp_path, text.llama_bench_text(dialect))
    assert trace.source_format == f"llama-bench {dialect}"
    prompt, generation = trace.bench_results
    assert (prompt.nt, prompt.generated, prompt.ubatch, prompt.flash_attention) == (512, 0, 512, True)
    assert prompt.tokens_per_second == 10039.2
    assert prompt.commit == "0c1e570"
    assert (generation.nt, generation.generated) == (0, 128)
    assert prompt.mean_ns == (None if dialect == "markdown" else 51_000_000)
    assert prompt.samples_ns == ((50_000_000, 51_000_000, 52_000_000) if dialect.startswith("json") else ())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (text.llama_bench_text("json")[:-200], "ends or breaks"),
        (text.llama_bench_text("jsonl").replace("10039.2,", '"fast",', 1), "expected a number"),
        (text.llama_bench_text("jsonl").replace("10039.2,", "NaN,", 1), "expected a finite number"),
        (text.llama_bench_text("markdown").replace("pp512", "warp9"), "test 'warp9'"),
        (text.llama_bench_text("csv").splitlines()[0] + "\n", "without a result"),
    ],
)
def test_broken_llama_bench_output_is_refused(tmp_path, content, expected):
    with pytest.raises(TraceError, match=expected):
        _open(tmp_path, content)


@pytest.mark.parametrize("packed", [False, True])
def test_cupti_rows(tmp_path, packed):
    trace = open_trace(cupti_tsv(tmp_path / "t", packed=packed))
    expected = [row for row in KERNELS if row[2] == 0]
    assert trace.launches.start.tolist() == [row[0] for row in expected]
    assert [trace.names[name] for name in trace.launches.name] == [row[5] for row in expected]
    assert trace.copies.bytes.tolist() == [4096, 1024]
    assert [trace.copy_kinds[kind] for kind in trace.copies.kind] == ["host to device", "device to host"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"K\t{T0}\t{T0 + 1}\t1\t1\t1\t32", "does not fit 9 fields"),
        (f"K\t{T0}\tx\t1\t1\t1\t32\t5\tname", "does not fit 9 fields"),
        ("Q\t1\t2", "begins with 'Q"),
        (f"K\t{T0 + 9}\t{T0}\t1\t1\t1\t32\t5\tname", "end before they start"),
    ],
)
def test_broken_cupti_rows_are_refused(tmp_path, line, expected):
    path = cupti_tsv(tmp_path / "t", packed=False)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(TraceError, match=expected):
        open_trace(path)


def test_a_cut_cupti_file_is_refused(tmp_path):
    path = cupti_tsv(tmp_path / "t", packed=False)
    path.write_text(path.read_text()[:-10])
    with pytest.raises(TraceError, match="cut"):
        open_trace(path)


def test_the_real_kernel_sums():
    path = shared_file("traces", "nsys_cuda_gpu_kern_sum_dsocr.csv")
    trace = open_trace(path)
    lines = path.read_text().splitlines()[1:]
    fields = [line.split(",", 3) for line in lines]
    assert [(row.total_ns, row.launches) for row in trace.sums] == [(int(field[1]), int(field[2])) for field in fields]
    assert trace.launches is None


def test_the_real_ncu_report():
    (profile,) = open_trace(shared_file("traces", "ncu_details_dsocr_kernel1.csv")).profiles
    assert (profile.duration_ns, profile.bytes_read, profile.bytes_written) == (6750, 2_330_000, 0)
    # ncu's own "Memory Throughput" row says 345.14 Gbyte/s; ours divides its rounded bytes by its rounded time.
    assert profile.bytes_per_second == pytest.approx(345.14e9, rel=2e-3)


def test_the_real_llama_bench_results():
    path = shared_file("traces", "h200_llama-bench.jsonl")
    results = open_trace(path).bench_results
    assert len(results) == len(path.read_text().splitlines())
    best = min((row for row in results if row.nt == 3325), key=lambda row: statistics.median(row.samples_ns))
    assert best.ubatch == 2048
    assert best.samples_ns == (327795965, 306036231, 304489771, 305172139, 306625034)
    # The first of five samples is a warm-up, so the median stands near the 10,880 tok/s of other sittings, the mean below.
    assert 3325 / statistics.median(best.samples_ns) * 1e9 == pytest.approx(10_880, rel=0.005)
    assert llama_bench.recognises(path.read_text()) == "jsonl"


@pytest.mark.parametrize(
    ("name", "kernels", "copies"),
    [
        ("h200_llamacpp_nt511_ub512.tsv.gz", 1844, 352),
        ("h200_llamacpp_nt3325_ub4096.tsv.gz", 1682, 352),
        ("h200_llamacpp_nt3325_ub512.tsv.gz", 12832, 412),
    ],
)
def test_the_real_cupti_captures(name, kernels, copies):
    path = shared_file("traces", name)
    trace = open_trace(path)
    with gzip.open(path, "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    assert (len(trace.launches), len(trace.copies)) == (kernels, copies)
    assert trace.launches.end.tolist() == [int(row[2]) for row in rows if row[0] == "K"]
    assert trace.copies.start.tolist() == [int(row[1]) for row in rows if row[0] == "M"]
