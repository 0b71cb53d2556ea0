"""The compiled kernels in their place in a model: the answers of NumPy alone, whatever the weights' type."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import minfer
from minfer.gguf import open_gguf
from tests.minfer.synthetic import Tiny, write_tiny
from tests.real_models import GEMMA, SMOLLM2, real_model

TOKENS = [int(token) for token in np.random.default_rng(0).integers(0, 50, 70)]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: install gcc")


def apart(path, tokens):
    """Largest difference of the logits of all tokens, and of a decoded one, over their spread."""
    native, alone = (minfer.load(path, backend="numpy", gates={"native": on}) for on in (True, False))
    assert (native.gates["native"], alone.gates["native"]) == (True, False)
    expected = alone.logits(tokens)
    prefilled = np.abs(native.logits(tokens) - expected).max() / expected.std()
    expected = alone.decode(tokens[0])
    return prefilled, np.abs(native.decode(tokens[0]) - expected).max() / expected.std()


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "BF16", "F32"])
@pytest.mark.parametrize("tiny", [Tiny("gemma3", tied=True), Tiny("llama"), Tiny("qwen3moe", experts=4, experts_used=2)])
def test_a_small_model_of_each_type(tmp_path, tiny, kind):
    path = tmp_path / "tiny.gguf"
    write_tiny(path, replace(tiny, type=kind))
    prefilled, decoded = apart(path, TOKENS)
    assert prefilled < 1e-3
    assert decoded < 1e-3


def test_a_row_that_the_kernels_cannot_read_is_numpys(tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny(path, Tiny("llama", feed_forward=90))
    assert max(apart(path, TOKENS)) < 1e-4


@pytest.mark.real_model
@pytest.mark.parametrize("name", [GEMMA, SMOLLM2])
def test_a_real_model(name):
    path = real_model(name)
    vocabulary = open_gguf(path).tensors["token_embd.weight"].shape[0]
    tokens = [int(token) for token in np.random.default_rng(1).integers(0, vocabulary, 64)]
    prefilled, decoded = apart(path, tokens)
    assert prefilled < 0.02
    assert decoded < 0.002


def test_decode_keeps_no_weights(tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny(path, Tiny("llama", type="Q4_0"))
    engine = minfer.load(path, backend="numpy")
    engine.prefill(TOKENS[:4])
    engine.decode(3)
    assert engine.memory()["dequantised weights"] == 0


@pytest.mark.parametrize("native", [True, False])
def test_logits_of_a_text_take_bounded_memory_beyond_the_result(tmp_path, monkeypatch, native):
    path = tmp_path / "tiny.gguf"
    write_tiny(path, Tiny("llama", vocabulary=1000, type="Q4_0"))
    engine = minfer.load(path, backend="numpy", gates={"native": native})
    expected = engine.logits(TOKENS)
    monkeypatch.setattr("minfer.model.LOGITS_BYTES", 20 * 4000)
    engine = minfer.load(path, backend="numpy", gates={"native": native})
    rows = []
    run = engine._run
    monkeypatch.setattr(engine, "_run", lambda start, ids, wanted: rows.append(wanted) or run(start, ids, wanted))
    np.testing.assert_allclose(engine.logits(TOKENS), expected, atol=1e-3 * expected.std())
    assert rows == [20, 20, 20, 10]
    # A buffer of the pool is a power of two: that of 20 rows of 4,000 bytes is 128 KiB.
    assert engine.memory()["scratch"] < 1 << 20


def test_one_setting_limits_the_threads_of_the_kernels_and_of_blas(tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny(path, Tiny("llama"))
    with threadpool_limits(1, user_api="blas"):
        assert minfer.load(path, backend="numpy").backend._kernels.threads == 1
    assert minfer.load(path, backend="numpy", gates={"threads": 5}).backend._kernels.threads == 5
