"""The budget holds, and whether a weight is kept changes no number."""

import numpy as np
import pytest

import minfer
from minfer.backends import Matrix
from minfer.backends.dense import DenseWeights
from minfer.gguf import open_gguf
from tests.minfer.synthetic import Tiny, write_tiny

TOKENS = list(range(12))


@pytest.fixture(scope="module", params=["Q4_0", "F16", "F32"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("dense") / "t.gguf"
    return path, write_tiny(path, Tiny("qwen3moe", type=request.param, experts=4, experts_used=2, feed_forward=64))


def test_the_budget_changes_no_number_and_holds(model):
    path, _ = model
    everything = minfer.load(path, backend="numpy")
    for budget in (0, 40_000):
        bounded = minfer.load(path, backend="numpy", gates={"weight_cache_bytes": budget})
        np.testing.assert_allclose(bounded.prefill(TOKENS), everything.prefill(TOKENS), atol=1e-5)
        np.testing.assert_allclose(bounded.decode(3), everything.decode(3), atol=1e-5)
        largest_buffer = 64 * 64 * 4
        assert bounded.memory()["dequantised weights"] <= budget + largest_buffer
    assert everything.gates["weight_cache_bytes"] >= everything.memory()["dequantised weights"]


@pytest.mark.parametrize("budget", [0, 1 << 20])
def test_rows_are_the_weights_in_order(model, budget):
    path, stored = model
    tensor = open_gguf(path).tensors["token_embd.weight"]
    for _ in range(2):
        found = np.zeros(tensor.shape, np.float32)
        for start, rows in DenseWeights(budget).rows(Matrix(tensor, None)):
            found[start : start + len(rows)] = rows
        np.testing.assert_array_equal(found, stored["token_embd.weight"])


def test_a_weight_larger_than_the_buffer_is_converted_in_blocks(model, monkeypatch):
    path, stored = model
    monkeypatch.setattr("minfer.backends.dense._BLOCK_BYTES", 7 * 64 * 4)
    weights = DenseWeights(0)
    table = Matrix(open_gguf(path).tensors["token_embd.weight"], None)
    found = [(start, rows.copy()) for start, rows in weights.rows(table)]
    assert [start for start, _ in found] == list(range(0, 50, 7))
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in found]), stored["token_embd.weight"])
    assert weights.buffer_bytes == 7 * 64 * 4
