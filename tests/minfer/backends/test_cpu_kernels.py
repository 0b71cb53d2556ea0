"""Each CPU kernel against float64, over ragged shapes, with poisoned results; in each build of cpu_builds.py.

test_cpu_sanitised.py runs them once more with the sanitisers.
"""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends import cpu_kernels
from minfer.backends.cpu_kernels import DECODED, INTEGER_TYPES
from minfer.quantisation import QUANTISATIONS
from tests.gpu.support import stored_blocks
from tests.minfer.backends.cpu_builds import PARAMETERS, kernels_of
from tests.minfer.backends.test_attend import plain

KINDS = {q.name: q for q in QUANTISATIONS.values()}


@pytest.fixture(scope="module", params=PARAMETERS)
def kernels(request, tmp_path_factory):
    with kernels_of(request.param, tmp_path_factory.mktemp("build")) as made:
        yield made


def poisoned(*shape):
    return np.full(shape, np.nan, np.float32)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def lengths(name):
    return (256, 768, 2304) if KINDS[name].block == 256 else (32, 96, 608)


@pytest.mark.parametrize("name", sorted(DECODED))
def test_mmv(kernels, name):
    for m, n, k in zip((1, 3, 5, 8, 1), (1, 7, 33, 130, 900), (*lengths(name), *lengths(name)[:2]), strict=True):
        raw, dense = stored_blocks(name, n, k, np.random.default_rng(n))
        x, y = random(m, k), poisoned(m, n)
        kernels.mmv(KINDS[name], cpu_kernels.address_of(raw), x, y)
        bound = np.abs(x).astype(np.float64) @ np.abs(dense).T
        np.testing.assert_array_less(np.abs(y - x.astype(np.float64) @ dense.T), 1e-6 * bound + 1e-30)


@pytest.mark.parametrize("name", sorted(DECODED))
def test_dequantise(kernels, name):
    for n, k in zip((1, 7, 130), lengths(name), strict=True):
        raw, dense = stored_blocks(name, n, k, np.random.default_rng(n))
        out = poisoned(n, k)
        kernels.dequantise(KINDS[name], cpu_kernels.address_of(raw), out)
        # One rounding fewer where a product and a sum are one instruction.
        np.testing.assert_allclose(out, dense, rtol=2e-6, atol=2e-6 * np.abs(dense).max())


def test_every_number_of_16_bits(kernels):
    patterns = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):  # of the NaNs that signal
        wide = patterns.view(np.float16).astype(np.float32)
    out = poisoned(1 << 16)
    kernels.dequantise(KINDS["f16"], cpu_kernels.address_of(patterns), out)
    np.testing.assert_array_equal(out, wide)
    kernels.dequantise(KINDS["bf16"], cpu_kernels.address_of(patterns), out)
    np.testing.assert_array_equal(out, (patterns.astype(np.uint32) << 16).view(np.float32))
    # As the scale of a block, too: each holds 32 times 1.
    blocks, out = np.ones((1 << 16, 34), np.uint8), poisoned(1 << 16, 32)
    blocks[:, :2] = patterns.view(np.uint8).reshape(-1, 2)
    kernels.dequantise(KINDS["q8_0"], cpu_kernels.address_of(blocks), out)
    np.testing.assert_array_equal(out, np.repeat(wide[:, None], 32, axis=1))


@pytest.mark.parametrize("name", sorted(INTEGER_TYPES))
def test_integer_product(kernels, name):
    for m, n, k in zip((1, 9, 32, 33, 70), (1, 7, 33, 130, 300), (*lengths(name), *lengths(name)[:2]), strict=True):
        raw, dense = stored_blocks(name, n, k, np.random.default_rng(n))
        x, y = random(m, k), poisoned(m, n)
        # An outlier, as models have them, and a group of nothing.
        x[:, 5] *= 1000
        x[m // 2, 32:64] = 0
        packed, panels = poisoned(kernels.packed_floats(m, k)), poisoned(kernels.panel_floats(k))
        kernels.pack(x, packed)
        kernels.integer_product(KINDS[name], cpu_kernels.address_of(raw), k, packed, panels, y)
        # The stated rounding: half a step of a 65534th of the largest of 32 activations, met by every weight of them.
        steps = np.repeat(np.abs(x.reshape(m, -1, 32)).max(axis=-1), 32, axis=-1).astype(np.float64) / 65534
        bound = steps @ np.abs(dense).T + 2e-6 * (np.abs(x).astype(np.float64) @ np.abs(dense).T)
        np.testing.assert_array_less(np.abs(y - x.astype(np.float64) @ dense.T), bound + 1e-30)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_does_not_become_one_by_rounding(kernels, bad):
    raw, _ = stored_blocks("q8_0", 5, 64, np.random.default_rng(0))
    x, y = random(40, 64), poisoned(40, 5)
    x[3, 40] = bad
    packed, panels = poisoned(kernels.packed_floats(40, 64)), poisoned(kernels.panel_floats(64))
    kernels.pack(x, packed)
    kernels.integer_product(KINDS["q8_0"], cpu_kernels.address_of(raw), 64, packed, panels, y)
    assert np.isnan(y[3]).all()
    assert np.isfinite(np.delete(y, 3, axis=0)).all()


@pytest.mark.parametrize(("rows", "d"), [(1, 1), (3, 16), (5, 640), (33, 17), (512, 100)])
def test_rms_norm(kernels, rows, d):
    x, w, y = random(rows, d), random(d, seed=1), poisoned(rows, d)
    kernels.rms_norm(x, w, y, 1e-6)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(y, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * w, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("m", "heads", "d", "pairs"), [(1, 1, 2, 1), (3, 2, 24, 9), (33, 3, 64, 32), (200, 4, 80, 40)])
def test_rope(kernels, m, heads, d, pairs, interleaved):
    x, angles = random(m, heads, d), random(m, 1, pairs, seed=1).astype(np.float64)
    cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    expected = x.astype(np.float64)
    low, high = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (slice(pairs), slice(pairs, 2 * pairs))
    turned = (x[..., low] + 1j * x[..., high].astype(np.float64)) * np.exp(1j * angles)
    expected[..., low], expected[..., high] = turned.real, turned.imag
    kernels.rope(x, cosine, sine, interleaved=interleaved)
    np.testing.assert_allclose(x, expected, atol=1e-6)


@pytest.mark.parametrize("activation", ["silu", "gelu"])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 40000])
def test_gated_activation(kernels, activation, count):
    gate, up = 6 * random(count), random(count, seed=1)
    extremes = (-1e37, 200, -100, 0, -88, -1e4)[:count]
    gate[: len(extremes)] = extremes
    x, u = gate.astype(np.float64), up.astype(np.float64)
    z = x if activation == "silu" else 2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    with np.errstate(over="ignore"):
        expected = x / (1 + np.exp(-z)) * u
    kernels.gated_activation(gate, up, activation)
    np.testing.assert_allclose(gate, expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("activation", ["silu", "gelu"])
def test_an_activation_that_is_no_number_stays_none(kernels, activation):
    gate, up = np.array([np.nan, np.inf, -np.inf, 1, 2], np.float32), np.array([1, 1, 1, np.nan, 1], np.float32)
    kernels.gated_activation(gate, up, activation)
    # 0 times infinity; as the reference has it.
    assert (np.isnan(gate).tolist(), gate[1]) == ([True, False, True, True, False], np.inf)


@pytest.mark.parametrize("count", [1, 15, 40000])
def test_add(kernels, count):
    x, y = random(count), random(count, seed=1)
    expected = x + y
    kernels.add(x, y)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("softcap", [None, 1.5])
@pytest.mark.parametrize("window", [None, 1, 5, 64, 100])
@pytest.mark.parametrize(("position", "m"), [(0, 1), (0, 32), (0, 130), (63, 2), (100, 1), (70, 129), (300, 7)])
@pytest.mark.parametrize(("d", "dv"), [(8, 6), (24, 32)])
def test_attention(kernels, d, dv, position, m, window, softcap):
    room = position + m + 3
    q, keys, values = random(m, 4, d), random(2, room, d, seed=1), random(2, room, dv, seed=2)
    # What lies behind the positions in use must not matter.
    keys[:, position + m :] = np.nan
    values[:, position + m :] = np.nan
    out = poisoned(m, 4, dv)
    scratch = poisoned(kernels.attention_floats(m, d, dv, position))
    kernels.attention(q, keys, values, out, scratch, position, 0.7, window, softcap)
    expected = plain(q, keys[:, : position + m], values[:, : position + m], position, 0.7, window, softcap)
    np.testing.assert_allclose(out.reshape(m, -1), expected, atol=1e-5)


@pytest.mark.parametrize("window", [None, 30])
@pytest.mark.parametrize(("m", "position"), [(70, 0), (3, 30)])
def test_a_key_that_is_no_number_reaches_every_token_that_sees_it_and_no_other(kernels, m, position, window):
    q, keys, values = random(m, 2, 8), random(1, position + m, 8, seed=1), random(1, position + m, 8, seed=2)
    keys[0, position + 1, 3] = np.nan
    out, scratch = poisoned(m, 2, 8), poisoned(kernels.attention_floats(m, 8, 8, position))
    kernels.attention(q, keys, values, out, scratch, position, 0.7, window, None)
    sees = np.arange(m) >= 1
    if window:
        sees &= np.arange(m) < 1 + window
    np.testing.assert_array_equal(np.isnan(out), np.broadcast_to(sees[:, None, None], out.shape))


def test_shapes_that_do_not_fit_are_refused(kernels):
    with pytest.raises(ValueError, match=r"kernel mmv: shapes \[1, 32\], \[1, 5\] do not fit"):
        kernels.mmv(KINDS["q4_K"], 0, random(1, 32), poisoned(1, 5))
    with pytest.raises(ValueError, match=r"kernel dequantise: shapes \[3, 0\] do not fit"):
        kernels.dequantise(KINDS["f32"], 0, poisoned(3, 0))
    with pytest.raises(ValueError, match=r"kernel pack: shapes \[0, 32\]"):
        kernels.pack(random(0, 32), poisoned(100))
    with pytest.raises(ValueError, match="kernel integer_product"):
        kernels.integer_product(KINDS["q8_0"], 0, 32, poisoned(9999), poisoned(9999), poisoned(0, 5))
    with pytest.raises(ValueError, match="kernel rms_norm"):
        kernels.rms_norm(random(2, 0), random(0), poisoned(2, 0), 1e-6)
    with pytest.raises(ValueError, match=r"kernel mmv: shapes \[9, 32\], \[9, 5\] do not fit"):
        kernels.mmv(KINDS["q8_0"], 0, random(9, 32), poisoned(9, 5))
    with pytest.raises(ValueError, match="expected contiguous float32"):
        kernels.mmv(KINDS["q8_0"], 0, random(32, 2).T, poisoned(2, 5))
