"""Every architecture's logits against the float64 pass, and the engine's own promises about ubatches and decode."""

import numpy as np
import pytest

import minfer
from minfer.models import architectures
from minfer.operations import Operation
from tests.minfer.reference import reference_logits
from tests.minfer.synthetic import Tiny, write_tiny

CASES = {
    "llama": Tiny("llama"),
    "llama-tied-partial-rotary": Tiny("llama", tied=True, extra={"rope.dimension_count": 8}),
    "llama-value-length": Tiny("llama", value_length=24),
    "qwen2": Tiny("qwen2", biased=True, tied=True),
    "qwen3": Tiny("qwen3", key_length=24, value_length=24, tied=True),
    "qwen3moe": Tiny("qwen3moe", experts=8, experts_used=3, feed_forward=32),
    "gemma3": Tiny("gemma3", layers=7, tied=True, extra={"attention.sliding_window": 5, "rope.freq_base": 1e6}),
    "gemma3-softcaps": Tiny("gemma3", extra={"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
}
YARN = {
    "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64,
    "rope.freq_base": 500.0,
}  # fmt: skip
LINEAR = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
CASES |= {
    "llama-linear": Tiny("llama", extra=LINEAR),
    "llama-llama3": Tiny("llama", rope_factors=True),
    "llama-yarn": Tiny("llama", extra=YARN),
    "qwen2-yarn": Tiny("qwen2", biased=True, extra=YARN),
    "gemma3-linear": Tiny("gemma3", layers=6, extra={"attention.sliding_window": 4, **LINEAR}),
}
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3]


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    tiny = CASES[request.param]
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    return tiny, path, write_tiny(path, tiny)


def test_every_architecture_has_a_case():
    assert {tiny.architecture for tiny in CASES.values()} == set(architectures())


@pytest.mark.parametrize("native", [True, False])
def test_logits_are_those_of_the_float64_pass(case, native):
    tiny, path, stored = case
    expected = reference_logits(tiny, stored, TOKENS)
    seen = minfer.load(path, backend="numpy", gates={"native": native}).logits(TOKENS)
    assert np.std(expected) > 0.1
    np.testing.assert_allclose(seen, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("ubatch", [1, 7])
def test_ubatch_does_not_change_the_answer(case, ubatch):
    _, path, _ = case
    whole = minfer.load(path, backend="numpy", ubatch=512)
    parts = minfer.load(path, backend="numpy", ubatch=ubatch)
    np.testing.assert_allclose(parts.prefill(TOKENS), whole.prefill(TOKENS), atol=1e-4)
    np.testing.assert_allclose(parts.logits(TOKENS), whole.logits(TOKENS), atol=1e-4)


def test_decode_continues_a_prefill(case):
    _, path, _ = case
    engine = minfer.load(path, backend="numpy")
    expected = engine.logits(TOKENS)
    seen = [engine.prefill(TOKENS[:5])] + [engine.decode(token) for token in TOKENS[5:]]
    assert engine.position == len(TOKENS)
    np.testing.assert_allclose(np.stack(seen), expected[4:], atol=1e-4)


class _Recorder:
    def __init__(self) -> None:
        self.begun: list[Operation] = []
        self.ended: list[Operation] = []

    def begin(self, operation: Operation) -> None:
        assert len(self.begun) == len(self.ended)
        self.begun.append(operation)

    def end(self, operation: Operation) -> None:
        self.ended.append(operation)


@pytest.mark.parametrize("ubatch", [512, 7])
def test_operations_are_exactly_those_that_run(case, ubatch):
    _, path, _ = case
    engine = minfer.load(path, backend="numpy", ubatch=ubatch)
    engine.observer = recorder = _Recorder()
    engine.prefill(TOKENS)
    assert recorder.begun == recorder.ended == engine.operations(len(TOKENS))


def test_macs_are_counted_from_shapes(case):
    tiny, path, _ = case
    nt = len(TOKENS)
    operations = minfer.load(path, backend="numpy").operations(nt)
    e, f = tiny.embedding, tiny.feed_forward
    attention = e * (tiny.heads + tiny.kv_heads) * (tiny.key_length + tiny.value_length)
    fed = (tiny.layers - 1) * nt + 1
    linear = tiny.layers * nt * attention + fed * 3 * e * f * (tiny.experts_used or 1)
    assert sum(o.macs for o in operations if o.kernel_class == "f32 GEMM") == linear
    assert sum(o.macs for o in operations if o.kernel_class == "router") == fed * e * tiny.experts
    assert [o.macs for o in operations if o.kernel_class == "logits"] == [tiny.vocabulary * e]
    window = tiny.extra.get("attention.sliding_window", nt)
    pairs = sum(min(p + 1, nt if (layer + 1) % 6 == 0 else window) for layer in range(tiny.layers) for p in range(nt))
    counted = sum(o.macs for o in operations if o.kernel_class == "attention")
    assert counted == pairs * tiny.heads * (tiny.key_length + tiny.value_length)
