"""llama.cpp's arms share one load of the weights, and each states the memory of weights and context together."""

from types import SimpleNamespace

import pytest

from benchmarks import arms
from benchmarks.peers.llama_library import PeerUnavailableError

GPU, CPU = SimpleNamespace(gpu_layers=999), SimpleNamespace(gpu_layers=0)


class Memory:
    """The driver's count: what was taken since this one was made."""

    used = 0

    def __init__(self, on_device):
        self.before = Memory.used if on_device else None

    def bytes(self):
        return None if self.before is None else Memory.used - self.before


class Weights:
    loaded = 0

    def __init__(self, model, gpu_layers):
        Memory.used += 4000
        Weights.loaded += 1
        self.gpu_layers, self.open = gpu_layers, True

    def close(self):
        Memory.used -= 4000
        self.open = False


def open_peer(weights, nt, ubatch):
    Memory.used += ubatch
    backend = "cuda" if weights.gpu_layers else "cpu"
    return SimpleNamespace(name="llama.cpp", backend=backend, options=SimpleNamespace(ubatch=ubatch), close=lambda: None)


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    Memory.used, Weights.loaded = 100, 0
    for name, stand_in in (("PeakMemory", Memory), ("LlamaWeights", Weights), ("open_peer", open_peer)):
        monkeypatch.setattr(arms, name, stand_in)


def peaks(instrument, nts):
    found, notes = [], []
    with arms.peer_weights("m.gguf", instrument, notes) as shared:
        for nt in nts:
            for arm in arms.peer_arms(shared, instrument, [1] * nt, arms.peer_ubatches(nt), 3, notes):
                found.append((arm.name, arm.peak_bytes()))
    assert notes == []
    assert not shared.weights.open
    return found


def test_each_arm_counts_the_weights_and_its_own_context():
    assert peaks(GPU, (512, 600)) == [
        ("llama.cpp 512", 4512), ("llama.cpp 256", 4256), ("llama.cpp 512", 4512), ("llama.cpp 600", 4600),
    ]  # fmt: skip
    assert Weights.loaded == 1


def test_on_a_cpu_no_figure_would_be_the_peers_own():
    assert peaks(CPU, (512,)) == [("llama.cpp 512", None), ("llama.cpp 256", None)]


def test_without_llama_cpp_there_is_a_note_and_no_weights(monkeypatch):
    def missing(model, gpu_layers):
        raise PeerUnavailableError("llama.cpp: no library found")

    monkeypatch.setattr(arms, "LlamaWeights", missing)
    notes = []
    with arms.peer_weights("m.gguf", GPU, notes) as shared:
        assert shared is None
    assert notes == ["no peer: llama.cpp: no library found"]


def test_the_weights_are_freed_where_the_window_fails():
    with pytest.raises(ZeroDivisionError), arms.peer_weights("m.gguf", GPU, []) as shared:
        raise ZeroDivisionError
    assert not shared.weights.open
