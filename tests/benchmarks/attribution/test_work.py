"""Work from tensor shapes: launch by launch for llama.cpp, by class for others, unknown where it cannot be told."""

import pytest

from benchmarks.attribution.answer_json import to_json
from benchmarks.attribution.attribute import attribute
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.llama_launches import LaunchOrderError
from benchmarks.attribution.macs import AttentionShape, TensorShape
from benchmarks.attribution.windows import choose
from benchmarks.attribution.work import label
from tests.benchmarks.attribution import qwen2_7b
from tests.benchmarks.attribution.ingest.builders import T0, nsys_sqlite
from tests.shared_files import shared_file

TENSORS = [
    TensorShape("blk.0.attn_q.weight", 64, 32, "q4_K"),
    TensorShape("blk.0.ffn_down.weight", 32, 128, "q6_K"),
    TensorShape("output.weight", 1000, 32, "q6_K"),
]


def _classes(tmp_path, kernels, **options):
    rows = [(T0 + 100 * i, T0 + 100 * i + 50, 0, 7, i, name) for i, name in enumerate(kernels)]
    trace = open_trace(nsys_sqlite(tmp_path / "t", kernels=rows, copies=[]))
    found = label(trace, TENSORS, 100, **options)
    answer = attribute(trace, "t", choose(trace), work=found, tokens=100)
    return {row["name"]: row for row in to_json(answer)["devices"]["0"]["classes"]}, answer.notes


def test_one_class_of_products_did_all_linear_layers(tmp_path):
    shape = AttentionShape(heads=2, head_dim=16)
    classes, notes = _classes(tmp_path, ["void cutlass::gemm_bf16<1>()", "flash_fwd_kernel<2>"], attention=[shape])
    (gemm,) = [row for name, row in classes.items() if "GEMM" in name]
    assert gemm["gmac"] == pytest.approx(100 * (64 * 32 + 32 * 128) / 1e9)
    assert gemm["us_per_gmac"] == pytest.approx(0.050 / gemm["gmac"])
    # 100 tokens see 1 + 2 + ... + 100 keys; scores and values, 2 heads of 16.
    assert classes["attention"]["gmac"] == pytest.approx(2 * 2 * 16 * 5050 / 1e9)
    assert any("one pass of 100 tokens" in note for note in notes)


def test_several_classes_of_products_stay_unknown(tmp_path):
    classes, notes = _classes(tmp_path, ["ampere_bf16_s16816gemm_bf16_128x64", "ampere_sgemm_128x64_tn"])
    assert [row["gmac"] for name, row in classes.items() if "GEMM" in name] == [None, None]
    assert any("cannot be told" in note for note in notes)


def test_a_llama_cpp_trace_of_another_model_is_refused(tmp_path):
    with pytest.raises(LaunchOrderError):
        _classes(tmp_path, ["void mul_mat_q<(ggml_type)14, (int)128, (bool)0>(int)"] * 3)


@pytest.mark.parametrize(
    ("name", "tokens", "q4", "q6"),
    [
        ("h200_llamacpp_nt3325_ub4096.tsv.gz", 3325, 10.68, 14.14),
        ("h200_llamacpp_nt511_ub512.tsv.gz", 511, None, None),
    ],
)
def test_the_real_llama_cpp_captures_get_their_published_cost(name, tokens, q4, q6):
    trace = open_trace(shared_file("traces", name))
    starts = sorted(trace.launches.start.tolist())
    timed = choose(trace, span=f"{starts[len(starts) // 2]}:")
    found = label(trace, qwen2_7b.tensors(), tokens, attention=[qwen2_7b.ATTENTION] * qwen2_7b.LAYERS)
    (device,) = to_json(attribute(trace, name, timed, work=found, tokens=tokens))["devices"].values()
    classes = {row["name"]: row for row in device["classes"]}
    assert classes["q4_K GEMM"]["gmac"] == pytest.approx(17_999.1 * tokens / 3325, rel=1e-4)
    assert classes["q6_K GEMM"]["gmac"] == pytest.approx(3_020.2 * tokens / 3325, rel=1e-4)
    if q4 is not None:
        # Published before fix-ups; the class holds its stream-k fix-ups too, so it costs at least that.
        for row, cost in ((classes["q4_K GEMM"], q4), (classes["q6_K GEMM"], q6)):
            own = sum(split["ns"] for split in row["splits"] if "fix-up" not in split["operation"])
            assert own / 1e3 / row["gmac"] == pytest.approx(cost, abs=0.006)
