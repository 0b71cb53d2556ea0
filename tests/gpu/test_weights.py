"""Kernels that read quantised weights, each type, against gguf-py's dequantiser and float64 products."""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends.cuda import launch
from tests.gpu.support import LENGTHS, distance, random_blocks

F16_STEP = 2.0**-11
"""Half the relative distance of two neighbours in f16: the error of storing."""


@pytest.mark.parametrize("kind", launch.DECODED)
def test_dequantise_gives_the_nearest_f16(gpu, kind):
    raw, dense = random_blocks(kind, 37, 512, np.random.default_rng(1))
    out = gpu.poisoned(dense.shape, "f16")
    launch.dequantise(gpu.device, kind, gpu.put(raw).pointer, out)
    seen = gpu.get(out).astype(np.float64)
    assert (np.abs(seen - dense) <= F16_STEP * np.abs(dense) * 1.001 + 6e-8).all()


@pytest.mark.parametrize("kind", launch.DECODED)
def test_embedding_takes_the_rows_of_the_tokens(gpu, kind):
    random = np.random.default_rng(2)
    raw, dense = random_blocks(kind, 50, 768, random)
    tokens = random.integers(0, 50, 23).astype(np.int32)
    out = gpu.poisoned((23, 768), "f32")
    launch.embedding(gpu.device, kind, gpu.put(raw).pointer, gpu.put(tokens), out, 3.0)
    np.testing.assert_allclose(gpu.get(out), 3.0 * dense[tokens], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n", "k"), [(1, 256), (50, 256), (257, 3584), (64, 18944), (9000, 768)])
@pytest.mark.parametrize("kind", launch.DECODED)
def test_matrix_vector_products(gpu, kind, n, k):
    random = np.random.default_rng(n)
    raw, dense = random_blocks(kind, n, k, random)
    x = random.standard_normal((3, k)).astype(np.float16)
    weights, given = gpu.put(raw), gpu.put(x)
    given.scale = 2.0
    bias = random.standard_normal(n).astype(np.float32)
    expected = 2.0 * (x.astype(np.float64) @ dense.astype(np.float64).T) + bias
    for dtype, bound in (("f32", 1e-5), ("f16", 1e-3)):
        out = gpu.poisoned((3, n), dtype)
        launch.mmv(gpu.device, kind, weights.pointer, given, out, gpu.put(bias))
        assert distance(gpu.get(out), expected) < bound


@pytest.mark.parametrize("kinds", [("q4_K", "q4_K"), ("q4_K", "q4_K", "q6_K"), ("q6_K", "q4_K"), ("q4_K", "q4_K", "q4_K")])
@pytest.mark.parametrize("k", [256, 3584])
def test_grouped_matrix_vector_products(gpu, kinds, k):
    random = np.random.default_rng(k)
    x = random.standard_normal((3, k)).astype(np.float16)
    given = gpu.put(x)
    given.scale = 0.5
    products, expected = [], []
    for i, kind in enumerate(kinds):
        n = (50, 3000, 512)[i]
        raw, dense = random_blocks(kind, n, k, random)
        bias = None if i == 1 else random.standard_normal(n).astype(np.float32)
        expected.append(0.5 * (x.astype(np.float64) @ dense.astype(np.float64).T) + (0 if bias is None else bias))
        placed = None if bias is None else gpu.put(bias)
        products.append(launch.Product(kind, gpu.put(raw).pointer, gpu.poisoned((3, n), "f16"), placed))
    launch.mmv_group(gpu.device, given, products)
    for product, values in zip(products, expected, strict=True):
        assert distance(gpu.get(product.out), values) < 1e-3


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize("kind", ["q4_K", "q6_K", "f16", "q4_1"])
def test_products_through_f16(gpu, kind, m):
    random = np.random.default_rng(m)
    raw, dense = random_blocks(kind, 328, 1024, random)
    x = random.standard_normal((m, 1024)).astype(np.float16)
    expected = x.astype(np.float64) @ dense.astype(np.float64).T
    out = gpu.poisoned((m, 328), "f16")
    gpu.backend.products.f16(kind, gpu.put(raw).pointer, 328, gpu.put(x), out)
    assert distance(gpu.get(out), expected) < 1e-3
