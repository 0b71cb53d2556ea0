from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.llama_launches import LaunchOrderError, label_llama_launches
from benchmarks.attribution.macs import GMAC, TensorShape, us_per_gmac
from tests.shared_files import shared_file

from . import qwen2_7b
from .builders import make_trace

TYPE = {"q4_K": 12, "q6_K": 14}


def _table(blocks=2):
    rows = []
    for block in range(blocks):
        for role in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            rows.append(TensorShape(f"blk.{block}.{role}.weight", 4, 4, "q6_K" if role == "attn_v" else "q4_K"))
    rows.append(TensorShape("output.weight", 50, 4, "q6_K"))
    return rows


def _launches(functions, start=10):
    return [(start + 2 * i, start + 2 * i + 1, function) for i, function in enumerate(functions)]


def _mmq(*kinds):
    return [f"void mul_mat_q<(ggml_type){TYPE[kind]}, 128, false>(char const*)" for kind in kinds]


def _mmv(*kinds):
    return [f"void mul_mat_vec_q<(ggml_type){TYPE[kind]}, 1, true, false>(void const*)" for kind in kinds]


BLOCK = _mmq("q4_K", "q6_K", "q4_K", "q4_K")  # q, v, k, output
FEED_FORWARD = _mmq("q4_K", "q4_K", "q4_K")
LAST_TOKEN = _mmv("q4_K", "q4_K", "q6_K")  # fused gate and up, down, head


def test_products_get_their_tensors_and_the_fix_up_that_of_the_product_before_it():
    fix_up = "void mul_mat_q_stream_k_fixup<(ggml_type)14, 128, false>(int const*)"
    run = [*BLOCK[:2], fix_up, *BLOCK[2:], *FEED_FORWARD, *BLOCK, *LAST_TOKEN]
    trace = label_llama_launches(make_trace(_launches(run * 2)), _table(), tokens=20, ubatch=512)
    named = [trace.operations[index].name if index >= 0 else "-" for index in trace.launches.operation]
    block = ["attn_q", "attn_v", "attn_k", "attn_output"]
    once = ["attn_q", "attn_v", "attn_v", "attn_k", "attn_output", "ffn_gate", "ffn_up", "ffn_down", *block]
    once += ["ffn_gate + ffn_up", "ffn_down", "output"]
    assert named == once * 2
    found = {item.name: item for item in decompose(trace).classes}
    assert found["q6_K GEMM"].macs == 2 * 2 * 20 * 16
    assert [split.operation for split in found["q6_K GEMM"].splits] == ["attn_v", "attn_v, stream-k fix-up"]
    assert found["q4_K GEMV"].macs == 2 * 3 * 16
    assert found["logits"].macs == 2 * 200


def test_the_last_block_runs_its_feed_forward_in_the_last_pass_only():
    first = BLOCK + FEED_FORWARD + BLOCK
    trace = label_llama_launches(make_trace(_launches(first * 2 + LAST_TOKEN)), _table(), tokens=30, ubatch=20)
    assert [label.m for label in trace.operations if label.name == "attn_q"] == [20, 20, 10, 10]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (BLOCK + FEED_FORWARD, "7 mul_mat_q launches seen, expected a multiple of 11"),
        ([], "0 mul_mat_q launches seen"),
        (BLOCK + FEED_FORWARD + BLOCK[::-1], "launch 9 works on q4_K, expected q6_K (attn_v of block 1)"),
    ],
)
def test_another_models_launches_are_refused(run, message):
    with pytest.raises(LaunchOrderError) as caught:
        label_llama_launches(make_trace(_launches(run)), _table(), tokens=20, ubatch=512)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("file", "tokens", "ubatch", "kernels", "busy_ms", "span_ms"),
    [
        ("h200_llamacpp_nt511_ub512.tsv.gz", 511, 512, 922, 48.114, 48.226),
        ("h200_llamacpp_nt3325_ub4096.tsv.gz", 3325, 4096, 841, 283.170, 283.218),
        ("h200_llamacpp_nt3325_ub512.tsv.gz", 3325, 512, 6416, 322.172, 348.986),
    ],
)
def test_real_traces(file, tokens, ubatch, kernels, busy_ms, span_ms):
    raw = qwen2_7b.read_tsv(shared_file("traces", file))
    trace = label_llama_launches(raw, qwen2_7b.tensors(), tokens, ubatch, attention=qwen2_7b.ATTENTION)
    result = decompose(trace, window=qwen2_7b.second_half(trace))
    assert sum(item.launches for item in result.classes) == kernels
    assert round(result.busy_ns / 1e6, 3) == busy_ms
    assert round(result.span_ns / 1e6, 3) == span_ms
    assert result.unclassified == ()
    found = {item.name: item for item in result.classes}
    macs_per_token = {"q4_K GEMM": 17_999.1 / 3325, "q6_K GEMM": 3_020.2 / 3325}
    for name, expected in macs_per_token.items():
        assert found[name].macs / GMAC == pytest.approx(expected * tokens, rel=1e-4)
    passes = -(-tokens // ubatch)
    main = {name: [s for s in found[name].splits if "fix-up" not in s.operation] for name in macs_per_token}
    assert {name: sum(split.launches for split in splits) for name, splits in main.items()} == {
        "q4_K GEMM": 166 * passes,
        "q6_K GEMM": 27 * passes,
    }
    launches = Counter()
    for split in main["q6_K GEMM"]:  # the last, shorter pass is a shape of its own
        launches[split.operation] += split.launches
    assert launches == {"ffn_down": 13 * passes, "attn_v": 14 * passes}
    assert found["attention"].macs is not None
    if ubatch == 4096:
        cost = {name: us_per_gmac(sum(s.ns for s in main[name]), found[name].macs) for name in main}
        assert {name: round(value, 2) for name, value in cost.items()} == {"q4_K GEMM": 10.68, "q6_K GEMM": 14.14}
