"""The command as a user meets it: an answer on stdout, or one line on stderr and a code that says so."""

import json
import re

import gguf
import numpy as np
import pytest

from benchmarks.__main__ import main
from tests.benchmarks.attribution.ingest import text_builders as text
from tests.benchmarks.attribution.ingest.builders import KERNELS, T0, nsys_sqlite

UNKNOWN = [*KERNELS, (T0 + 2000, T0 + 2900, 0, 7, 9, "my_own_thing_v3<a | b>")]


def test_json_is_one_object(tmp_path, capsys):
    assert main(["attribute", str(nsys_sqlite(tmp_path / "t")), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["format"] == "nsys sqlite"
    assert out["devices"]["1"]["busy_ns"] == 200


def test_the_terminal_table(tmp_path, capsys):
    assert main(["attribute", str(nsys_sqlite(tmp_path / "t")), "--device", "0"]) == 0
    out = capsys.readouterr().out
    assert "the whole trace" in out
    assert re.search(r"q4_K GEMM +\S+ +0\.000600 +60\.0 +80\.0 +1$", out, re.M)
    assert "gap: host late" in out
    assert "ok       closure" in out


@pytest.mark.parametrize("shape", [["--json"], ["--markdown"], ["--html"], []])
def test_busy_time_by_range_is_in_every_shape(tmp_path, capsys, shape):
    path = str(nsys_sqlite(tmp_path / "t"))
    assert main(["attribute", path, "--device", "0", *shape, "--by-range"]) == 0
    assert "outside every range" in capsys.readouterr().out
    assert main(["attribute", path, "--by-range", "("]) == 2
    assert "not a regular expression" in capsys.readouterr().err


def test_markdown_and_html_hold_the_same_figures_and_escape_names(tmp_path, capsys):
    path = str(nsys_sqlite(tmp_path / "t", kernels=UNKNOWN))
    assert main(["attribute", path, "--markdown"]) == 0
    assert "my\\_own\\_thing\\_v3&#60;a &#124; b&#62;" in capsys.readouterr().out
    assert main(["attribute", path, "--html"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    assert "my_own_thing_v3&lt;a | b&gt;" in page
    assert not re.search(r"(?:src|href)=|@import|url\(|<script", page)


def test_strict_fails_where_a_check_failed_and_still_answers(tmp_path, capsys):
    path = str(nsys_sqlite(tmp_path / "t", kernels=UNKNOWN))
    assert main(["attribute", path]) == 0
    assert "FAILED" in capsys.readouterr().out
    assert main(["attribute", path, "--strict"]) == 1
    captured = capsys.readouterr()
    assert "my_own_thing_v3" in captured.out
    assert "unclassified share of busy" in captured.err
    assert captured.err.count("\n") == 1


def test_a_users_rules_come_first(tmp_path, capsys):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nsymbols = "my_own_thing"\nclass = "my class"\n')
    assert main(["attribute", str(nsys_sqlite(tmp_path / "t", kernels=UNKNOWN)), "--rules", str(rules), "--json"]) == 0
    device = json.loads(capsys.readouterr().out)["devices"]["0"]
    assert device["unclassified"] == []
    assert "my class" in [row["name"] for row in device["classes"]]


@pytest.mark.parametrize("shape", [[], ["--markdown"], ["--html"], ["--json"]])
@pytest.mark.parametrize(
    "content",
    [text.llama_bench_text("markdown"), text.csv_text(text.KERN_SUM_HEADER, text.kern_sum_cells())],
)
def test_what_has_no_timeline_is_shown_too(tmp_path, capsys, shape, content):
    (tmp_path / "r").write_text(content)
    assert main(["attribute", str(tmp_path / "r"), *shape]) == 0
    assert "10,039.2" in (out := capsys.readouterr().out) or "10039.2" in out or "bf16 GEMM" in out


@pytest.mark.parametrize("shape", [[], ["--markdown"], ["--html"], ["--json"]])
def test_profiled_kernels_show_their_traffic(tmp_path, capsys, shape):
    metrics = [
        (3, "dram__bytes_read.sum", "Mbyte", "2.5"),
        (3, "dram__bytes_write.sum", "Mbyte", "0.5"),
        (3, "gpu__time_duration.sum", "us", "6"),
    ]
    (tmp_path / "r").write_text(text.ncu_text(metrics))
    assert main(["attribute", str(tmp_path / "r"), *shape]) == 0
    assert "500000000000.0" in (out := capsys.readouterr().out) or "500.000" in out


def test_a_window_that_is_not_there_names_the_file(tmp_path, capsys):
    path = str(nsys_sqlite(tmp_path / "t"))
    assert main(["attribute", path, "--range", "nowhere"]) == 2
    assert capsys.readouterr().err == f"benchmarks attribute: {path}: no range named 'nowhere'; it holds step\n"


BAD = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "empty": lambda path: path.write_bytes(b""),
    "rubbish": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "foreign": lambda path: path.write_text('{"hello": 1}'),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line_and_no_answer(tmp_path, capsys, spoil):
    path = nsys_sqlite(tmp_path / "t")
    spoil(path)
    assert main(["attribute", str(path), "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"benchmarks attribute: {path}: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("shape", [[], ["--markdown"], ["--html"]])
def test_against_gives_costs_per_unit_and_a_ledger(tmp_path, capsys, shape):
    before = nsys_sqlite(tmp_path / "a")
    after = nsys_sqlite(tmp_path / "b", kernels=[(s, s + (e - s) // 2, *rest) for s, e, *rest in KERNELS])
    assert main(["attribute", str(before), "--device", "0", "--against", str(after), *shape]) == 0
    out = capsys.readouterr().out
    assert "q4_K GEMM" in out.replace("\\", "")
    assert "0.500" in out
    assert "ledger per launch of q4" in out.replace("\\", "")
    assert "same mix of work" in out


def test_against_in_json_holds_both_sides(tmp_path, capsys):
    path = str(nsys_sqlite(tmp_path / "a"))
    assert main(["attribute", path, "--against", path, "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["against"]["devices"] == out["devices"]
    assert {row["ratio"] for item in out["comparison"] for row in item["classes"]} == {1.0}
    assert [item["ledger"]["net_ns"] for item in out["comparison"]] == [0, 0]


def _tiny_gguf(path):
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in (("context", 64), ("embedding", 32), ("block", 1), ("feed_forward", 64), ("head", 2)):
        add = {
            "context": writer.add_context_length,
            "embedding": writer.add_embedding_length,
            "block": writer.add_block_count,
            "feed_forward": writer.add_feed_forward_length,
            "head": writer.add_head_count,
        }[key]
        add(value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((32, 32), np.float32))
    writer.add_tensor("blk.0.ffn_down.weight", np.zeros((32, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_model_and_a_length_give_work_and_cost(tmp_path, capsys):
    kernels = [(T0, T0 + 5000, 0, 7, 1, "ampere_bf16_s16816gemm_bf16_128x64")]
    path = str(nsys_sqlite(tmp_path / "t", kernels=kernels, copies=[]))
    model = str(_tiny_gguf(tmp_path / "m.gguf"))
    assert main(["attribute", path, "--gguf", model, "--tokens", "10", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["devices"]["0"]["classes"]
    assert row["gmac"] == pytest.approx(10 * (32 * 32 + 32 * 64) / 1e9)
    assert row["us_per_gmac"] == pytest.approx(5 / row["gmac"])
    assert main(["attribute", path, "--gguf", model, "--tokens", "10"]) == 0
    assert "us/GMAC" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tokens", "5"], "belong together"),
        (["--gguf", "absent.gguf", "--tokens", "5"], "absent.gguf: not a readable GGUF file"),
        (["--gguf", "absent.gguf", "--tokens", "0"], "expected at least 1"),
    ],
)
def test_half_of_what_work_needs_is_refused(tmp_path, capsys, options, expected):
    assert main(["attribute", str(nsys_sqlite(tmp_path / "t")), *options]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
