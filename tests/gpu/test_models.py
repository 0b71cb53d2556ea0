"""Whole models on the GPU against the NumPy backend."""

from __future__ import annotations

import numpy as np
import pytest

import minfer
from minfer.backends.cuda import expert_fused, fused, launch
from minfer.synthesis.write import synthesise
from tests.gpu.support import distance
from tests.minfer.models.test_architectures import CASES, TOKENS
from tests.minfer.synthetic import Tiny, write_tiny
from tests.real_models import SMOLLM2, real_model

TYPES = ("F32", "F16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
BOUND = 4e-3
"""f16 activations through a few layers of random weights."""


QUANTISED_BOUND = 3e-2
"""Activations of 8 bits through eight layers."""


def compare(path, tokens, bound=BOUND, **options):
    reference = minfer.load(path, backend="numpy")
    engine = minfer.load(path, backend="cuda", **options)
    expected = reference.logits(tokens)
    assert distance(engine.logits(tokens), expected) < bound
    assert distance(engine.prefill(tokens), expected[-1]) < bound
    steps = [engine.prefill(tokens[:5])] + [engine.decode(token) for token in tokens[5:]]
    assert distance(np.stack(steps), expected[4:]) < bound


ROUTED_BOUND = 3e-2
"""A mixture's router may choose another expert where two are nearly equal."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ubatch", [512, 7])
def test_every_architecture_gives_the_logits_of_numpy(backend, tmp_path, name, ubatch):
    write_tiny(tmp_path / "tiny.gguf", CASES[name])
    compare(tmp_path / "tiny.gguf", TOKENS, ROUTED_BOUND if CASES[name].experts else BOUND, ubatch=ubatch)


@pytest.mark.parametrize(("keys", "values"), [(320, 320), (512, 512), (264, 512)])
def test_heads_wider_than_a_slice_give_the_logits_of_numpy(backend, tmp_path, keys, values):
    write_tiny(tmp_path / "tiny.gguf", Tiny("llama", key_length=keys, value_length=values))
    compare(tmp_path / "tiny.gguf", TOKENS)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("used", [1, 8, 3])
def test_a_mixture_of_every_stored_type_gives_the_logits_of_numpy(backend, tmp_path, kind, used):
    tiny = Tiny("qwen3moe", experts=8, experts_used=used, type=kind, embedding=64, feed_forward=96)
    write_tiny(tmp_path / "tiny.gguf", tiny)
    compare(tmp_path / "tiny.gguf", TOKENS, ROUTED_BOUND)


def off_by(seen, expected):
    """``distance`` of each row."""
    return np.array([distance(*rows) for rows in zip(seen, expected, strict=True)])


@pytest.mark.parametrize("gates", [{}, {"graphs": False}, {"mmq": True}, {"dense": True}])
def test_a_mixture_of_q4_k_and_q6_k_gives_the_logits_of_numpy(backend, tmp_path, gates):
    """In eight layers of random routers a few tokens meet two experts that are nearly equal; most do not."""
    synthesise(tmp_path / "tiny.gguf", "tiny", "q4_k_m", architecture="qwen3moe")
    tokens = np.random.default_rng(1).integers(0, 1024, 40)
    expected = minfer.load(tmp_path / "tiny.gguf", backend="numpy").logits(tokens)
    engine = minfer.load(tmp_path / "tiny.gguf", backend="cuda", gates=gates)
    seen = engine.logits(tokens)
    steps = [engine.prefill(tokens[:5])] + [engine.decode(token) for token in tokens[5:]]
    for rows, wanted in ((seen, expected), (steps, expected[4:])):
        assert np.median(off_by(rows, wanted)) < (QUANTISED_BOUND if "mmq" in gates else 1e-2)
        assert max(off_by(rows, wanted)) < 0.5


def test_fused_experts_give_the_logits_of_numpy(backend, tmp_path, monkeypatch):
    synthesise(tmp_path / "tiny.gguf", "tiny", "q4_k_m", architecture="qwen3moe")
    tokens = np.random.default_rng(1).integers(0, 1024, 40)
    expected = minfer.load(tmp_path / "tiny.gguf", backend="numpy").logits(tokens)
    seen, run = [], expert_fused.product
    monkeypatch.setattr(expert_fused, "_LEAST_CHOICES", 1)  # tiny's experts have few
    monkeypatch.setattr(expert_fused, "product", lambda *given: (seen.append(1), run(*given))[1])
    rows = off_by(minfer.load(tmp_path / "tiny.gguf", backend="cuda").logits(tokens), expected)
    assert np.median(rows) < 1e-2
    assert max(rows) < 0.5
    assert seen or backend.device.target != fused.TARGET


def test_a_pass_over_a_mixture_is_replayed_as_a_graph(backend, tmp_path, monkeypatch):
    synthesise(tmp_path / "tiny.gguf", "tiny", "q4_k_m", architecture="qwen3moe")
    engine = minfer.load(tmp_path / "tiny.gguf", backend="cuda")
    routed, waits = [], []
    route, fetch = launch.router_top, engine.backend.device.fetch
    monkeypatch.setattr(launch, "router_top", lambda *given: (routed.append(1), route(*given))[1])
    monkeypatch.setattr(engine.backend.device, "fetch", lambda *given: (waits.append(1), fetch(*given))[1])
    tokens = np.random.default_rng(1).integers(0, 1024, 40)
    # The first pass makes memory, the second finds its last place, the third is captured.
    passes = [engine.prefill(tokens) for _ in range(3)]
    launched = len(routed)
    passes += [engine.prefill(tokens) for _ in range(3)]
    assert len(routed) == launched == 3 * engine.config.layers
    # The host waits for the logits alone.
    assert len(waits) == len(passes)
    assert all((seen == passes[0]).all() for seen in passes)
    steps = [engine.decode(token) for token in (5, 6, 7)]
    assert len(routed) == launched + 2 * engine.config.layers
    assert len(waits) == len(passes) + len(steps)


@pytest.mark.parametrize("kind", TYPES)
def test_every_stored_type_gives_the_logits_of_numpy(backend, tmp_path, kind):
    tiny = Tiny("qwen2", biased=True, type=kind, heads=4, kv_heads=2, embedding=256, key_length=64, value_length=64)
    write_tiny(tmp_path / "tiny.gguf", tiny)
    compare(tmp_path / "tiny.gguf", TOKENS)


@pytest.mark.parametrize("gates", [{"mmq": True}, {"fa": False}, {"fa3": False}, {"graphs": False}, {"dense": True}])
def test_every_gate_gives_the_logits_of_numpy(backend, tmp_path, gates):
    tiny = Tiny("qwen2", biased=True, type="Q8_0", embedding=256, key_length=64, value_length=64, feed_forward=512)
    write_tiny(tmp_path / "tiny.gguf", tiny)
    # Activations of 8 bits cost what a quantised file costs.
    compare(tmp_path / "tiny.gguf", TOKENS, 2e-2 if "mmq" in gates else BOUND, gates=gates)


MIX_GATES = [{}, {"graphs": False}, {"dense": True}, {"fused": True}, {"mmq": True}, {"bt": True}, {"bt": True, "mmq": True}]


@pytest.mark.parametrize("gates", MIX_GATES)
def test_a_mix_of_q4_k_and_q6_k_gives_the_logits_of_numpy(backend, tmp_path, gates):
    synthesise(tmp_path / "tiny.gguf", "tiny", "q4_k_m")
    tokens = np.random.default_rng(1).integers(0, 1024, 40)
    quantised = gates.get("mmq") or gates.get("bt")
    compare(tmp_path / "tiny.gguf", tokens, QUANTISED_BOUND if quantised else BOUND, gates=gates)


def test_fused_products_give_the_logits_of_numpy(backend, tmp_path, monkeypatch):
    synthesise(tmp_path / "tiny.gguf", "tiny", "q4_k_m")
    seen = []
    run = fused.fused
    monkeypatch.setattr(fused, "pays", lambda m, n: True)  # tiny's matrices have few rows
    monkeypatch.setattr(fused, "fused", lambda *arguments: (seen.append(arguments), run(*arguments))[1])
    compare(tmp_path / "tiny.gguf", np.random.default_rng(1).integers(0, 1024, 40))
    assert seen or backend.device.target != fused.TARGET


def test_smollm2_gives_the_logits_of_numpy(backend):
    path = real_model(SMOLLM2)
    tokens = np.random.default_rng(0).integers(0, 49000, 300)
    expected = minfer.load(path, backend="numpy").logits(tokens)
    seen = minfer.load(path, backend="cuda").logits(tokens)
    assert distance(seen, expected) < 1e-2
    assert (seen.argmax(-1) == expected.argmax(-1)).mean() > 0.97


def test_a_model_too_large_for_the_context_says_what_to_lower(backend, tmp_path):
    write_tiny(tmp_path / "tiny.gguf", Tiny("llama"))
    with pytest.raises(minfer.errors.MinferError, match="lower the ubatch or the context"):
        minfer.load(tmp_path / "tiny.gguf", backend="cuda", context=1 << 40)
