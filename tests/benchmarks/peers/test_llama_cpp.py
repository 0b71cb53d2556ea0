"""The real library on a real model: the same tokens, the right next token, a trace that covers its wall."""

import pytest

from benchmarks.peers import llama_library
from benchmarks.peers.llama_cpp import LlamaCpp, LlamaWeights, PeerOptions
from tests.real_models import SMOLLM2, real_model

pytest.importorskip("xllamacpp", reason="no llama.cpp wheel installed")

# "The capital of France is", as SmolLM2's tokenizer splits it, and " Paris".
PROMPT = [504, 3575, 282, 4649, 314]
PARIS = 7042


@pytest.fixture(autouse=True)
def fresh_library():
    llama_library.load_library.cache_clear()


@pytest.mark.real_model
def test_it_tokenizes_and_answers():
    with LlamaCpp(real_model(SMOLLM2), PeerOptions(nt=16, threads=2)) as peer:
        assert peer.tokenize("The capital of France is") == PROMPT
        assert peer.prefill(PROMPT) > 0
        assert peer.logits(PROMPT).shape == (5, 49152)
        assert int(peer.logits(PROMPT)[-1].argmax()) in (PARIS, 260)


@pytest.mark.real_model
def test_its_trace_names_every_layers_products_and_counts_their_macs():
    with LlamaCpp(real_model(SMOLLM2), PeerOptions(nt=16, ubatch=8, threads=2), traced=True) as peer:
        trace = peer.traced_prefill(PROMPT)
    launches, start, end = trace.launches, *trace.window_ns
    assert (launches.start >= start).all() and (launches.end <= end).all()
    products = [trace.operations[i] for i in launches.operation if trace.operations[i].kernel_class == "q4_1 GEMM"]
    # Seven products a layer, thirty layers; the last layer's three of the FFN work on the last token alone.
    assert len(products) == 210
    tokens = [1 if p.layer == 29 and "ffn" in p.name else 5 for p in products]
    assert sum(p.macs for p in products) == sum(p.n * p.k * m for p, m in zip(products, tokens, strict=True))
    assert {trace.operations[i].kernel_class for i in launches.operation} >= {"attention", "norm", "rope", "logits"}


@pytest.mark.real_model
def test_contexts_on_the_same_weights_answer_alike_and_leave_them_open():
    weights = LlamaWeights(real_model(SMOLLM2))
    with LlamaCpp(weights, PeerOptions(nt=16, ubatch=16, threads=2)) as whole:
        one = whole.logits(PROMPT)
        with LlamaCpp(weights, PeerOptions(nt=16, ubatch=2, threads=2)) as parts:
            assert parts.weights is whole.weights
            other = parts.logits(PROMPT)
        # The first one still runs on them.
        assert whole.prefill(PROMPT) > 0
    assert one[-1].argmax() == other[-1].argmax() and abs(one - other).max() < 0.2
    assert weights.handle
    weights.close()
    weights.close()
    assert weights.handle is None


@pytest.mark.real_model
def test_more_tokens_than_the_context_is_one_clear_line():
    with (
        LlamaCpp(real_model(SMOLLM2), PeerOptions(nt=4, threads=2)) as peer,
        pytest.raises(llama_library.PeerUnavailableError, match="5 tokens for a context of 4"),
    ):
        peer.prefill(PROMPT)


def test_a_file_that_it_cannot_read_is_named(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF\x03\x00\x00\x00 cut")
    with pytest.raises(llama_library.PeerUnavailableError, match=r"cannot load broken\.gguf"):
        LlamaCpp(broken, PeerOptions(nt=4))
