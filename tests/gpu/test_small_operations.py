"""Norms, rotary embedding, cache writes, gated activations and sums against float64."""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends.cuda import launch
from tests.gpu.support import LENGTHS, distance


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize(
    ("dtype", "shape"), [("f32", (3584,)), ("f32", (64,)), ("f16", (640,)), ("f16", (5, 128)), ("f16", (2, 256))]
)
def test_rms_norm(gpu, m, dtype, shape):
    random = np.random.default_rng(m)
    x = (3 * random.standard_normal((m, *shape))).astype(np.float32 if dtype == "f32" else np.float16)
    weight = random.standard_normal(shape[-1]).astype(np.float32)
    out = gpu.poisoned(x.shape, "f16")
    launch.rms_norm(gpu.device, gpu.put(x), gpu.put(weight), out, 1e-5)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * weight
    assert distance(gpu.get(out), expected) < 4e-4


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("heads", "width", "pairs"), [(28, 128, 64), (2, 16, 4), (3, 80, 40), (2, 64, 16)])
def test_rope(gpu, m, interleaved, heads, width, pairs, biased):
    random = np.random.default_rng(m)
    x = random.standard_normal((m, heads, width)).astype(np.float16)
    past = 19
    angles = np.outer(np.arange(past + m), 1e4 ** (-np.arange(pairs) / pairs))
    turns = np.stack((np.cos(angles), np.sin(angles)), -1)
    bias = random.standard_normal(heads * width).astype(np.float32)
    expected = x.astype(np.float64) + (bias.reshape(heads, width) if biased else 0)
    first = slice(0, 2 * pairs, 2) if interleaved else slice(0, pairs)
    second = slice(1, 2 * pairs, 2) if interleaved else slice(pairs, 2 * pairs)
    a, b = expected[..., first].copy(), expected[..., second].copy()
    cosine, sine = turns[past:, None, :, 0], turns[past:, None, :, 1]
    expected[..., first], expected[..., second] = a * cosine - b * sine, a * sine + b * cosine
    given, added = gpu.put(x), gpu.put(bias) if biased else None
    state = gpu.put(np.array([past], np.int32))
    launch.rope(gpu.device, given, gpu.put(turns.astype(np.float32)), state, interleaved, added)
    assert distance(gpu.get(given), expected) < 4e-4


@pytest.mark.parametrize("m", LENGTHS)
def test_kv_write_touches_the_new_positions_only(gpu, m):
    random = np.random.default_rng(m)
    k, v = (random.standard_normal((m, 4, width)).astype(np.float16) for width in (64, 32))
    keys, values = gpu.poisoned((m + 9, 4, 64), "f16"), gpu.poisoned((m + 9, 4, 32), "f16")
    launch.kv_write(gpu.device, gpu.put(k), gpu.put(v), keys, values, gpu.put(np.array([5], np.int32)))
    for seen, new in ((gpu.get(keys), k), (gpu.get(values), v)):
        np.testing.assert_array_equal(seen[5 : 5 + m], new)
        assert np.isnan(seen[:5]).all()
        assert np.isnan(seen[5 + m :]).all()


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize("activation", ["silu", "gelu"])
def test_gated(gpu, m, activation):
    random = np.random.default_rng(m)
    gate, up = ((4 * random.standard_normal((m, 1000))).astype(np.float16) for _ in range(2))
    wide = gate.astype(np.float64)
    if activation == "silu":
        active = wide / (1 + np.exp(-wide))
    else:
        active = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    overflow, given = gpu.put(np.zeros(1, np.int32)), gpu.put(gate)
    launch.gated(gpu.device, given, gpu.put(up), activation, 1 / 16, overflow)
    assert distance(gpu.get(given), active * up / 16) < 5e-4
    assert gpu.get(overflow)[0] == 0


def test_gated_clamps_and_tells_what_f16_cannot_hold(gpu):
    gate, up = np.full((1, 8), 6e4, np.float16), np.full((1, 8), 6e4, np.float16)
    overflow, given = gpu.put(np.zeros(1, np.int32)), gpu.put(gate)
    launch.gated(gpu.device, given, gpu.put(up), "silu", 1 / 16, overflow)
    assert (gpu.get(given) == 65504).all()
    assert gpu.get(overflow)[0] == 1


@pytest.mark.parametrize("m", LENGTHS)
def test_sums_and_soft_cap(gpu, m):
    random = np.random.default_rng(m)
    x, y = random.standard_normal((m, 36)).astype(np.float32), random.standard_normal((m, 36)).astype(np.float16)
    bias = random.standard_normal(36).astype(np.float32)
    residual, product = gpu.put(x), gpu.put(y)
    launch.add_residual(gpu.device, residual, product)
    np.testing.assert_allclose(gpu.get(residual), x + y, rtol=1e-6)
    launch.add_bias(gpu.device, product, gpu.put(bias))
    assert distance(gpu.get(product), y.astype(np.float64) + bias) < 5e-4
    launch.soft_cap(gpu.device, residual, 0.5)
    np.testing.assert_allclose(gpu.get(residual), 0.5 * np.tanh((x + y) / 0.5), atol=1e-6)


@pytest.mark.parametrize("m", LENGTHS)
def test_norm_of_a_residual_sum(gpu, m):
    random = np.random.default_rng(m)
    x, y = random.standard_normal((m, 3584)).astype(np.float32), random.standard_normal((m, 3584)).astype(np.float16)
    weight = random.standard_normal(3584).astype(np.float32)
    residual, out = gpu.put(x), gpu.poisoned(x.shape, "f16")
    launch.rms_norm_residual(gpu.device, residual, gpu.put(y), gpu.put(weight), out, 1e-5)
    total = x.astype(np.float64) + y
    np.testing.assert_allclose(gpu.get(residual), total, rtol=1e-6, atol=1e-6)
    assert distance(gpu.get(out), total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * weight) < 4e-4
