"""A dropped file gets its portrait, or is refused in a line."""

import json

import pytest

from tests.benchmarks.attribution.ingest.builders import cupti_tsv
from tests.dashboard.conftest import charts, tables
from tests.shared_files import shared_file


def llama_bench_rows() -> bytes:
    row = {
        "n_prompt": 512,
        "n_gen": 0,
        "n_ubatch": 512,
        "n_batch": 2048,
        "avg_ts": 9860.0,
        "stddev_ts": 12.0,
        "avg_ns": 51927000,
    }
    row |= {"model_type": "qwen2 7B Q4_K", "backends": "CUDA", "samples_ns": [51900000, 51954000], "stddev_ns": 38000}
    return json.dumps([row]).encode()


def test_an_imported_llama_bench_file_gets_its_rows(open_screen, history):
    test = open_screen("import_trace", history)
    test.file_uploader[0].set_value(("<script>x</script>.json", llama_bench_rows(), "application/json"))
    test.run()
    assert not test.exception
    assert not test.error, test.error[0].value
    assert any("tokens_per_second" in frame for frame in tables(test))
    assert not any("<script>" in item.value for item in test.markdown)


def test_an_imported_file_of_no_known_format_is_refused_in_a_line(open_screen, history):
    test = open_screen("import_trace", history)
    test.file_uploader[0].set_value(("notes.txt", b"not a trace at all", "text/plain"))
    test.run()
    assert not test.exception
    assert test.error


def test_an_imported_trace_gets_its_bar_and_its_table(open_screen, history, tmp_path):
    path = cupti_tsv(tmp_path / "capture.tsv")
    test = open_screen("import_trace", history)
    test.file_uploader[0].set_value((path.name, path.read_bytes(), "text/plain"))
    test.run()
    assert not test.exception
    assert not test.error, test.error[0].value
    table = next(frame for frame in tables(test) if "class" in frame)
    bars = charts(test)["imported"]
    kernels = {trace["name"]: trace["x"][0] for trace in bars}
    assert {name: kernels[name] for name in table["class"]} == pytest.approx(
        dict(zip(table["class"], table["class_ms"], strict=True))
    )


REAL_TRACES = (
    "nsys_h100_2gpu_1s.sqlite",
    "nsys_cuda_gpu_kern_sum_dsocr.csv",
    "ncu_details_dsocr_kernel1.csv",
    "h200_llama-bench.jsonl",
)


@pytest.mark.parametrize("name", REAL_TRACES)
def test_real_files_are_imported(open_screen, history, name):
    path = shared_file("traces", name)
    test = open_screen("import_trace", history)
    test.file_uploader[0].set_value((path.name, path.read_bytes(), "application/octet-stream"))
    test.run()
    assert not test.exception
    assert not test.error, test.error[0].value
    assert tables(test)
