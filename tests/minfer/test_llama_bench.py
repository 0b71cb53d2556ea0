"""Every format holds what llama-bench's own reader tools expect: fields, order, types."""

import csv
import json
import sqlite3
from dataclasses import asdict

import pytest

from minfer.llama_bench import Row, rendered, summary
from tests.shared_files import shared_file

FIELDS = [
    "build_commit", "build_number", "cpu_info", "gpu_info", "backends", "model_filename", "model_type", "model_size",
    "model_n_params", "n_batch", "n_ubatch", "n_threads", "cpu_mask", "cpu_strict", "poll", "type_k", "type_v",
    "n_gpu_layers", "n_cpu_moe", "split_mode", "main_gpu", "no_kv_offload", "flash_attn", "devices", "tensor_split",
    "tensor_buft_overrides", "load_mode", "lazy_mode", "embeddings", "no_op_offload", "no_host", "repack",
    "fit_target", "fit_min_ctx", "n_prompt", "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts",
    "stddev_ts", "samples_ns", "samples_ts",
]  # fmt: skip


def row(**changes):
    values = {name: "x" if kind == "str" else 0 for name, kind in Row.__annotations__.items()}
    values |= {"cpu_strict": False, "no_kv_offload": False, "embeddings": False, "no_host": False, "repack": False}
    values |= {"n_prompt": 512, "model_size": 3 << 30, "model_n_params": 7_615_616_512, "model_type": 'a "b", c\'s'}
    return Row(**{**values, **summary([1_000_000, 3_000_000], 512), **changes})


def test_means_and_deviations_are_those_of_llama_bench():
    seen = summary([1_000_000, 3_000_000], 512)
    assert seen["avg_ns"] == 2_000_000
    assert seen["stddev_ns"] == 1_414_214
    assert seen["avg_ts"] == pytest.approx((512_000 + 170_666.667) / 2)
    assert summary([5], 1)["stddev_ns"] == 0


def test_json_and_jsonl_have_all_fields_in_order():
    (parsed,) = json.loads(rendered([row()], "json"))
    assert list(parsed) == FIELDS
    lines = rendered([row(), row(n_prompt=0, n_gen=8)], "jsonl").splitlines()
    assert [json.loads(line)["n_gen"] for line in lines] == [0, 8]
    assert json.loads(lines[0])["samples_ns"] == [1_000_000, 3_000_000]


def test_a_real_llama_bench_line_has_the_same_fields_and_types():
    line = json.loads(shared_file("traces", "h200_llama-bench.jsonl").read_text().splitlines()[0])
    ours = json.loads(rendered([row()], "jsonl"))
    assert list(line) == list(ours)
    assert {key: type(value) for key, value in line.items()} == {key: type(value) for key, value in ours.items()}


def test_csv_quotes_everything_and_leaves_samples_out():
    text = rendered([row()], "csv")
    header, values = list(csv.reader(text.splitlines()))
    assert header == FIELDS[:-2]
    assert dict(zip(header, values, strict=True))["model_type"] == 'a "b", c\'s'
    assert text.splitlines()[1].startswith('"x","0"')


def test_sql_runs():
    connection = sqlite3.connect(":memory:")
    connection.executescript(rendered([row(), row(n_prompt=0, n_gen=8)], "sql"))
    assert connection.execute("SELECT model_type, n_gen, avg_ns FROM llama_bench ORDER BY n_gen").fetchall() == [
        ("a \"b\", c's", 0, 2_000_000), ("a \"b\", c's", 8, 2_000_000),
    ]  # fmt: skip


def test_markdown_lines_up():
    slow = summary([1_000_000_000, 3_000_000_000], 512)
    lines = rendered([row(**slow), row(n_prompt=0, n_gen=8, **slow)], "md").splitlines()
    assert lines[0].split("|")[1].strip() == "model"
    assert "pp512" in lines[2]
    assert "tg8" in lines[3]
    assert "3.00 GiB" in lines[2]
    assert "7.62 B" in lines[2]
    assert len({len(line) for line in lines[:4]}) == 1


def test_the_row_keeps_its_own_values():
    assert asdict(row())["model_type"] == 'a "b", c\'s'
    assert row(n_prompt=0, n_gen=32).test == "tg32"
