"""The copy holds the same weights as float32, and is a model that the engine runs to the same logits."""

import numpy as np

import minfer
from benchmarks.engine import EngineOptions, MeasuredEngine
from benchmarks.peers.float32_copy import float32_bytes, write_float32_copy
from minfer.synthesis.write import synthesise


def test_the_copy_is_the_same_model(tmp_path):
    source, copy = tmp_path / "tiny.gguf", tmp_path / "copy.gguf"
    synthesise(source, "tiny", "q4_k_m", architecture="gemma3")
    engine = MeasuredEngine(source, EngineOptions("numpy"))
    weights = engine.weights()
    write_float32_copy(copy, engine.metadata(), weights, engine.float32_weights())
    copied = minfer.load(copy, backend="numpy")
    assert {tensor.type.name for tensor in copied.file.tensors.values()} == {"f32"}
    assert float32_bytes(weights) == sum(tensor.nbytes for tensor in copied.file.tensors.values())
    assert not any(key.startswith("tokenizer.ggml.tokens") for key in copied.file.metadata)
    tokens = [3, 1, 4, 1, 5]
    np.testing.assert_allclose(copied.logits(tokens), engine.logits(tokens), rtol=1e-4, atol=1e-4)
