"""The Transformers peer has the shape that the file states, and is absent with a reason where it cannot be had."""

import sys

import pytest

from benchmarks.peers.llama_library import PeerUnavailableError
from benchmarks.peers.transformers import DecoderShape, TransformersPeer

QWEN_7B = DecoderShape("qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 1e6, 1e-6)


def test_the_shape_of_qwen_7b_is_233_million_linear_weights_a_layer():
    assert QWEN_7B.linear_weights_per_layer == 233_046_016 - 0
    assert QWEN_7B.macs(3325) == 3325 * 28 * 233_046_016 + 3584 * 152064


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PeerUnavailableError, match="pip install torch transformers"):
        TransformersPeer(QWEN_7B, 512, device="cpu", compiled=False)


def test_it_runs_a_small_shape():
    pytest.importorskip("torch", reason="no PyTorch here")
    pytest.importorskip("transformers", reason="no Transformers here")
    shape = DecoderShape("qwen2", 2, 64, 128, 4, 2, 16, 100, 1e6, 1e-6)
    peer = TransformersPeer(shape, 8, device="cpu", compiled=False)
    assert peer.prefill(range(8)) > 0
    peer.close()


def test_another_architecture_is_refused_by_name(monkeypatch):
    class Fake:
        __version__ = "1"

    monkeypatch.setitem(sys.modules, "torch", Fake)
    monkeypatch.setitem(sys.modules, "transformers", Fake)
    shape = DecoderShape("gemma3", 2, 64, 128, 4, 2, 16, 100, 1e6, 1e-6)
    with pytest.raises(PeerUnavailableError, match="no shape of gemma3; there are llama, qwen2, qwen3"):
        TransformersPeer(shape, 8, device="cpu", compiled=False)
