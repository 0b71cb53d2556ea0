from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.events import OperationLabel
from benchmarks.attribution.macs import (
    GMAC,
    AttentionShape,
    ShapeError,
    TensorShape,
    block_and_role,
    causal_attention_macs,
    linear_work,
    macs_by_class,
    macs_by_weight_type,
    same_gmac,
    us_per_gmac,
)
from benchmarks.attribution.record import ClassTime

from . import qwen2_7b


@given(st.integers(1, 40), st.integers(0, 40), st.one_of(st.none(), st.integers(1, 50)))
def test_attention_counts_the_pairs_that_the_mask_keeps(tokens, past, window):
    pairs = sum(min(position + 1, window or position + 1) for position in range(past, past + tokens))
    assert causal_attention_macs(AttentionShape(3, 16, window), tokens, past) == 2 * 3 * 16 * pairs


def test_the_known_work_of_qwen2_7b():
    work = macs_by_class(linear_work(qwen2_7b.tensors(), 3325, last_block_ffn_tokens=1))
    assert round(work["q4_K GEMM"] / GMAC, 1) == 17_999.1
    assert round(work["q6_K GEMM"] / GMAC, 1) == 3_020.2
    assert work["logits"] == 152064 * 3584
    whole = macs_by_class(linear_work(qwen2_7b.tensors(), 3325))
    assert round((whole["q4_K GEMM"] + whole["q6_K GEMM"]) / GMAC) == 21_697
    assert 2 * 28 * causal_attention_macs(qwen2_7b.ATTENTION, 3325) / 1e12 == pytest.approx(2.22, abs=0.005)


def test_a_tied_head_is_the_embedding_and_norms_are_no_product():
    table = [TensorShape("token_embd.weight", 100, 8, "q8_0"), TensorShape("blk.0.attn_q.weight", 8, 8, "q4_K"),
             TensorShape("blk.0.attn_norm.weight", 8, 1, "f32")]  # fmt: skip
    labels = linear_work(table, 20)
    assert [(label.name, label.kernel_class, label.macs) for label in labels] == [
        ("output", "logits", 800),
        ("attn_q", "q4_K GEMM", 1280),
    ]


def test_experts_count_as_many_times_as_a_token_uses_them():
    table = [TensorShape("blk.0.ffn_up_exps.weight", 8, 8, "q4_K", experts=32)]
    with pytest.raises(ShapeError, match="32 experts"):
        linear_work(table, 10)
    assert linear_work(table, 10, experts_used=4)[0].macs == 4 * 10 * 64


def test_a_table_without_linear_layers_is_refused():
    with pytest.raises(ShapeError, match="expected names like"):
        linear_work([TensorShape("conv.weight", 3, 3, "f16")], 5)


def test_names_of_tensors():
    assert block_and_role("blk.12.ffn_down.weight") == (12, "ffn_down")
    assert block_and_role("output.weight") == (None, "output")


def test_cost_is_unknown_rather_than_infinite_without_work():
    assert us_per_gmac(1094.7e6, 2967 * GMAC) == pytest.approx(368.96, abs=0.01)
    assert us_per_gmac(5.0, None) is None
    assert us_per_gmac(5.0, 0) is None


def _classes(**macs):
    return [ClassTime(name.replace("_GE", " GE"), 1, 1, macs=value) for name, value in macs.items()]


def test_the_same_work_on_both_sides_passes_wherever_each_draws_the_line_to_vectors():
    ours, theirs = _classes(q4_K_GEMM=10, logits=5), _classes(q4_K_GEMM=7, q4_K_GEMV=3, logits=5)
    assert macs_by_weight_type(theirs) == {"q4_K": 10, "logits": 5}
    assert same_gmac(ours, theirs).passed is True


def test_different_work_fails_and_names_both_sides():
    check = same_gmac(_classes(q4_K_GEMM=10 * GMAC), _classes(q4_K_GEMM=8 * GMAC), ("minfer", "llama.cpp"))
    assert check.passed is False
    assert check.value == pytest.approx(0.2)
    assert "minfer 10.000, llama.cpp 8.000 GMAC" in check.detail


def test_work_that_one_side_does_not_know_leaves_the_check_open():
    check = same_gmac(_classes(q4_K_GEMM=10, q6_K_GEMM=1), _classes(q4_K_GEMM=10, q6_K_GEMM=None))
    assert (check.passed, "q6_K" in check.detail) == (None, True)
    assert same_gmac([], []).passed is None


def test_labels_without_a_count_are_not_zero_work():
    assert macs_by_class([OperationLabel("rope", "rope"), OperationLabel("x", None, macs=3)]) == {}
