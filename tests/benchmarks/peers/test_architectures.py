"""Every architecture against the real llama.cpp, on tiny models whose float32 weights it does not round."""

import numpy as np
import pytest

from benchmarks.attribution.agreement import compare_logits
from benchmarks.engine import EngineOptions, MeasuredEngine
from benchmarks.peers.float32_copy import write_float32_copy
from benchmarks.peers.llama_cpp import LlamaCpp, PeerOptions
from tests.minfer.models.test_architectures import CASES
from tests.minfer.synthetic import write_tiny

# llama.cpp refuses rotary dimensions or value lengths other than the key length, and reads no attention soft-cap here.
KNOWN = {name: tiny for name, tiny in CASES.items() if not name.endswith(("rotary", "value-length", "softcaps"))}


@pytest.mark.parametrize("name", KNOWN)
def test_logits_are_llama_cpps(tmp_path, name):
    pytest.importorskip("xllamacpp", reason="no llama.cpp wheel installed")
    source, copy = tmp_path / "tiny.gguf", tmp_path / "copy.gguf"
    write_tiny(source, KNOWN[name])
    engine = MeasuredEngine(source, EngineOptions("numpy"))
    write_float32_copy(copy, engine.metadata(), engine.weights(), engine.float32_weights())
    tokens = [int(token) for token in np.random.default_rng(1).integers(0, 50, 100)]
    with LlamaCpp(copy, PeerOptions(nt=128)) as peer:
        found = compare_logits(tokens, engine.logits(tokens), peer.logits(tokens))
    # What is left is llama.cpp's float16 key-value cache.
    assert found.mean_kl < 1e-5
    assert abs(found.perplexity_difference) < 1e-3
