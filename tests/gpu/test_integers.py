"""Products on the int8 matrix units against float64 products of the same quantised activations."""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends.cuda import launch
from minfer.backends.cuda.integers import MMQ_TYPES
from tests.gpu.support import LENGTHS, distance, random_blocks


def quantised(x):
    """Bytes, scales, and the activations that they mean, as ggml's q8_1 makes them (scales here in f32)."""
    groups = x.astype(np.float32).reshape(x.shape[0], -1, 32)
    largest = np.abs(groups).max(-1, keepdims=True)
    inverse = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest > 0)
    q = np.rint(groups * inverse)
    d = largest / np.float32(127)
    return q.astype(np.int8), d, (q.astype(np.float64) * d).reshape(x.shape)


def activations(m, k):
    """Tokens of very different size, one of zeros among them."""
    random = np.random.default_rng(m + k)
    x = random.standard_normal((m, k)) * np.exp(random.standard_normal((m, 1)))
    if m > 1:
        x[m // 2] = 0
    return x.astype(np.float16)


@pytest.mark.parametrize("m", LENGTHS)
def test_quantise_rounds_as_q8_1_does(gpu, m):
    x = activations(m, 320)
    q, d, _ = quantised(x)
    seen_q, seen = gpu.put(np.full((m, 320), 77, np.uint8)), gpu.poisoned((m, 10, 2), "f32")
    launch.quantise(gpu.device, gpu.put(x), seen_q, seen)
    off = gpu.get(seen_q).view(np.int8).astype(int) - q.reshape(m, 320)
    # Where the product lies on a half, one of two roundings is as good.
    assert (np.abs(off) <= 1).all()
    assert (off != 0).mean() < 1e-3
    np.testing.assert_allclose(gpu.get(seen)[..., :1], d, rtol=1e-6)
    sums = gpu.get(seen_q).view(np.int8).reshape(m, 10, 32).sum(-1)
    np.testing.assert_allclose(gpu.get(seen)[..., 1], sums * d[..., 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("m", "n", "k"), [*((m, 330, 512) for m in LENGTHS), (300, 128, 18944), (70, 1030, 768)])
@pytest.mark.parametrize("kind", sorted(MMQ_TYPES))
def test_mmq(gpu, kind, m, n, k):
    raw, dense = random_blocks(kind, n, k, np.random.default_rng(n))
    x = activations(m, k)
    expected = 2.0 * (quantised(x)[2] @ dense.astype(np.float64).T)
    given, weights = gpu.put(x), gpu.put(raw)
    q, scales = gpu.put(np.zeros((m, k), np.uint8)), gpu.poisoned((m, k // 32, 2), "f32")
    launch.quantise(gpu.device, given, q, scales)
    for dtype in ("f32", "f16"):
        out = gpu.poisoned((m, n), dtype)
        launch.mmq(gpu.device, kind, weights.pointer, q, scales, out, 2.0)
        assert distance(gpu.get(out), expected) < 2e-3


@pytest.mark.parametrize(("m", "n", "k"), [*((m, 330, 512) for m in LENGTHS), (300, 128, 18944), (70, 1030, 768)])
def test_bt(gpu, m, n, k):
    raw, dense = random_blocks("q4_K", n, k, np.random.default_rng(n))
    x = activations(m, k)
    expected = 2.0 * (quantised(x)[2] @ dense.astype(np.float64).T)
    padded = -(-m // 128) * 128
    q, scales = gpu.put(np.full((padded, k), 77, np.uint8)), gpu.poisoned((k // 32, padded, 2), "f32")
    launch.quantise_bt(gpu.device, gpu.put(x), q, scales)
    weights = gpu.put(raw)
    for dtype in ("f32", "f16"):
        out = gpu.poisoned((m, n), dtype)
        launch.bt(gpu.device, weights.pointer, q, scales, out, 2.0)
        assert distance(gpu.get(out), expected) < 2e-3
