"""Routing and products of a mixture of experts, over ragged shares, against NumPy and float64."""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends.cuda import expert_fused, launch
from minfer.backends.cuda.arrays import SIZES, DeviceArray
from minfer.backends.cuda.fused import STEP_NS, TARGET
from tests.gpu.support import distance, random_blocks

TOKENS = (1, 5, 7, 130, 511)


def tied_scores(m, experts):
    """Router scores with many equal ones, both zeros, an infinity and, where there is room, what is not a number."""
    random = np.random.default_rng(m + experts)
    scores = random.standard_normal((m, experts)).round(1).astype(np.float32)
    scores[::3, experts // 2] = -0.0
    scores[::3, 0] = 0.0
    scores[::4, -1] = -np.inf
    scores[1::5] = 2.5
    return scores


@pytest.mark.parametrize("m", TOKENS)
@pytest.mark.parametrize(("experts", "used"), [(8, 3), (128, 8), (16, 16), (300, 40), (1, 1)])
def test_the_router_chooses_as_numpy_does(gpu, m, experts, used):
    scores = tied_scores(m, experts)
    chosen, weights = gpu.put(np.full((m, used), -7, np.int32)), gpu.poisoned((m, used), "f32")
    launch.router_top(gpu.device, gpu.put(scores), chosen, weights)
    expected = np.argsort(-scores, axis=-1, kind="stable")[:, :used]
    np.testing.assert_array_equal(gpu.get(chosen), expected)
    wide = np.take_along_axis(scores, expected, -1).astype(np.float64)
    share = np.exp(wide - wide[:, :1])
    np.testing.assert_allclose(gpu.get(weights), share / share.sum(-1, keepdims=True), rtol=2e-6, atol=1e-12)


def test_what_is_not_a_number_is_chosen_last(gpu):
    scores = np.array([[np.nan, -np.inf, 1.0, np.nan, 3.0, -1.0]] * 3, np.float32)
    chosen, weights = gpu.put(np.full((3, 6), -7, np.int32)), gpu.poisoned((3, 6), "f32")
    launch.router_top(gpu.device, gpu.put(scores), chosen, weights)
    np.testing.assert_array_equal(gpu.get(chosen), [[4, 2, 5, 1, 0, 3]] * 3)


def shares(name, choices, experts):
    """The expert of each choice."""
    random = np.random.default_rng(choices)
    if name == "even":
        return (np.arange(choices) % experts).astype(np.int32)
    if name == "one expert":
        return np.full(choices, experts - 1, np.int32)
    if name == "one choice elsewhere":
        chosen = np.zeros(choices, np.int32)
        chosen[choices // 2] = experts // 2
        return chosen
    return np.minimum(random.geometric(0.2, choices) - 1, experts - 1).astype(np.int32)


SHARES = ("even", "one expert", "one choice elsewhere", "skewed")


def grouped(gpu, chosen, experts, tokens):
    order, place = (gpu.put(np.full(chosen.size, -7, np.int32)) for _ in range(2))
    tiles = gpu.put(np.full((chosen.size // tokens + experts, 4), -7, np.int32))
    launch.router_group(gpu.device, gpu.put(chosen), order, place, tiles, experts, tokens)
    return order, place, tiles


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("tokens", launch.EXPERT_TILES)
@pytest.mark.parametrize(("choices", "experts"), [(1, 1), (40, 8), (511, 128), (4096, 128), (5003, 3), (70000, 33)])
def test_choices_are_grouped_in_the_order_of_their_experts(gpu, share, tokens, choices, experts):
    chosen = shares(share, choices, experts)
    order, place, tiles = (gpu.get(array) for array in grouped(gpu, chosen, experts, tokens))
    np.testing.assert_array_equal(order, np.argsort(chosen, kind="stable"))
    np.testing.assert_array_equal(order[place], np.arange(choices))
    ends = np.cumsum(np.bincount(chosen, minlength=experts))
    full = tiles[tiles[:, 2] > tiles[:, 1]]
    assert (full[:, 2] - full[:, 1] <= tokens).all()
    covered = [place for _, first, last, _ in full for place in range(first, last)]
    assert covered == list(range(choices))
    for expert, first, last, _ in full:
        assert ends[expert] - np.bincount(chosen, minlength=experts)[expert] <= first < last <= ends[expert]


def scaled(x):
    x.scale = 2.0
    return x


GUARD = 8
"""Rows of NaN before an array and after it."""


def inside(whole):
    """What lies between the guards."""
    rows, width = whole.shape
    return DeviceArray(whole.pointer + GUARD * width * SIZES[whole.dtype], (rows - 2 * GUARD, width), whole.dtype)


def guarded(gpu, x):
    """x on the device: one that reads beyond it has what is not a number."""
    return inside(gpu.put(np.pad(x, ((GUARD, GUARD), (0, 0)), constant_values=np.nan)))


def check_product(gpu, kind, share, m, used, experts, n, k, tokens, per_token, fused=False):
    """``share``: a name, or the expert of each choice."""
    random = np.random.default_rng(m + n + k)
    raw, dense = random_blocks(kind, experts * n, k, random)
    dense = dense.reshape(experts, n, k)
    chosen = shares(share, m * used, experts) if isinstance(share, str) else share
    rows = m if per_token else m * used
    x = (random.standard_normal((rows, k)) * np.exp(random.standard_normal((rows, 1)))).astype(np.float16)
    whole = gpu.poisoned((m * used + 2 * GUARD, n), "f16")
    out = inside(whole)
    # Nothing beyond the last matrix may be read: the allocation ends there.
    weights = gpu.put(raw)
    inputs = (np.repeat(x, used, 0) if per_token else x).astype(np.float64)
    if tokens is None:
        launch.expert_mmv(gpu.device, kind, weights.pointer, scaled(guarded(gpu, x)), gpu.put(chosen), out)
    else:
        order, _, tiles = grouped(gpu, chosen, experts, tokens)
        given = scaled(guarded(gpu, x if per_token else x[np.argsort(chosen, kind="stable")]))
        multiply(gpu, kind, weights.pointer, experts, given, order, tiles, tokens, used if per_token else 0, out, fused)
        inputs, chosen = (values[np.argsort(chosen, kind="stable")] for values in (inputs, chosen))
    expected = np.empty((m * used, n))
    for expert in np.unique(chosen):
        its = chosen == expert
        expected[its] = 2.0 * inputs[its] @ dense[expert].astype(np.float64).T
    # Weights rounded up to three times to f16 (2^-11 each), the result once; f32 sums.
    assert distance(gpu.get(out), expected) < 1e-3
    seen = gpu.get(whole)
    assert np.isnan(seen[:GUARD]).all()
    assert np.isnan(seen[-GUARD:]).all()


def multiply(gpu, kind, weights, experts, x, order, tiles, tokens, share, out, fused):
    """Many choices, one way or the other."""
    if fused:
        expert_fused.product(gpu.device, kind, weights, experts, x, tiles, tokens, out)
    else:
        launch.expert_gemm(gpu.device, kind, weights, x, order, tiles, tokens, share, out)


WAYS = [(kind, tokens, False) for kind in ("q4_K", "q6_K", "q8_0") for tokens in launch.expert_tiles(kind)]
WAYS += [(kind, tokens, True) for kind in ("q4_K", "q6_K") for tokens in STEP_NS]
"""Type, choices of a tile, and whether the product is of Hopper's matrix units."""


def skip_unless_it_runs(gpu, fused):
    if fused and gpu.device.target != TARGET:
        pytest.skip(f"these matrix instructions are of compute capability 9.0, this GPU's target is {gpu.device.target}")


@pytest.mark.parametrize("n", [2, 30, 128, 162])
@pytest.mark.parametrize(("kind", "tokens", "fused"), WAYS)
def test_products_of_tiles_that_are_empty_full_or_one_off(gpu, kind, tokens, fused, n):
    skip_unless_it_runs(gpu, fused)
    counts = (0, 1, tokens - 1, tokens, tokens + 1, 0, 2 * tokens, 15, 16, 17, 0)
    chosen = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    np.random.default_rng(tokens).shuffle(chosen)
    check_product(gpu, kind, chosen, chosen.size, 1, len(counts), n, 256, tokens, per_token=False, fused=fused)


@pytest.mark.parametrize("k", [8, 56, 64, 72, 136])
@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_products_of_rows_of_any_eighth(gpu, kind, k):
    check_product(gpu, kind, "skewed", 70, 2, 5, 34, k, 64, per_token=True)


def free_bytes(gpu):
    return gpu.device.cupy.cuda.runtime.memGetInfo()[0]


@pytest.mark.parametrize(("kind", "tokens", "fused"), [*WAYS, *((kind, None, False) for kind in ("q4_K", "q6_K", "q8_0"))])
def test_products_with_matrices_far_into_their_tensor(gpu, kind, tokens, fused):
    """Beyond 2^31 bytes, 2^32 bytes, and as many weights; without tiles by the product for few choices."""
    skip_unless_it_runs(gpu, fused)
    n, k = 2048, 8192
    raw, dense = random_blocks(kind, n, k, np.random.default_rng(0))
    experts = 2**32 // raw.nbytes + 2
    if free_bytes(gpu) < (experts + 32) * raw.nbytes:
        pytest.skip("too little free memory for a tensor of more than 4 GiB")
    weights = gpu.device.allocate(experts * raw.nbytes)
    its = np.array([0, 1, 2**31 // raw.nbytes, 2**31 // raw.nbytes + 1, experts - 2, experts - 1])
    for expert in its:
        # A matrix of its own for each: the same rows in another order.
        gpu.device.upload(weights.pointer + int(expert) * raw.nbytes, np.roll(raw, expert, 0))
    chosen = its[np.arange(48) % its.size].astype(np.int32)
    x = np.random.default_rng(1).standard_normal((chosen.size, k)).astype(np.float16)
    out, order = gpu.poisoned((chosen.size, n), "f16"), np.arange(chosen.size)
    if tokens is None:
        launch.expert_mmv(gpu.device, kind, weights.pointer, gpu.put(x), gpu.put(chosen), out)
    else:
        placed, _, tiles = grouped(gpu, chosen, experts, tokens)
        order = np.argsort(chosen, kind="stable")
        multiply(gpu, kind, weights.pointer, experts, gpu.put(x[order]), placed, tiles, tokens, 0, out, fused)
    seen, products = gpu.get(out), x.astype(np.float32) @ dense.T
    for place, choice in enumerate(order):
        assert distance(seen[place], np.roll(products[choice], chosen[choice])) < 1e-3


@pytest.mark.parametrize(("kind", "tokens", "fused"), WAYS)
def test_results_far_into_their_array(gpu, kind, tokens, fused):
    """Beyond 2^31 values and 2^32 bytes."""
    skip_unless_it_runs(gpu, fused)
    n, k, experts = 32768, 256, 3
    choices = 2**31 // n + 200
    if free_bytes(gpu) < 2 * choices * n + 2**28:
        pytest.skip("too little free memory for results of more than 4 GiB")
    raw, dense = random_blocks(kind, experts * n, k, np.random.default_rng(0))
    chosen = np.sort(shares("even", choices, experts))
    x = np.random.default_rng(1).standard_normal((choices, k)).astype(np.float16)
    weights, memory = gpu.put(raw), gpu.device.allocate(2 * choices * n)
    out = DeviceArray(memory.pointer, (choices, n), "f16")
    order, _, tiles = grouped(gpu, chosen, experts, tokens)
    multiply(gpu, kind, weights.pointer, experts, gpu.put(x), order, tiles, tokens, 0, out, fused)
    for first in (0, choices // 3 - 2, 2**31 // n - 2, choices - 4):
        seen = gpu.get(DeviceArray(out.pointer + 2 * first * n, (4, n), "f16"))
        expected = [x[first + i].astype(np.float32) @ dense.reshape(experts, n, k)[chosen[first + i]].T for i in range(4)]
        assert distance(seen, np.stack(expected)) < 1e-3


SHAPES = [(7, 3, 8, 130, 256), (130, 2, 5, 96, 768), (511, 3, 16, 40, 512), (64, 8, 128, 24, 256)]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("m", "used", "experts", "n", "k"), SHAPES)
@pytest.mark.parametrize(("kind", "tokens"), [(kind, tokens) for kind in ("q4_K", "q6_K") for tokens in (64, 128)])
@pytest.mark.parametrize("per_token", [True, False])
def test_products_of_many_choices(gpu, kind, tokens, share, m, used, experts, n, k, per_token):
    check_product(gpu, kind, share, m, used, experts, n, k, tokens, per_token)


FUSED_SHAPES = [*SHAPES, (700, 2, 4, 384, 512), (20, 1, 2, 18, 1024)]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("m", "used", "experts", "n", "k"), FUSED_SHAPES)
@pytest.mark.parametrize("tokens", STEP_NS)
@pytest.mark.parametrize("kind", ["q4_K", "q6_K"])
def test_fused_products_of_many_choices(gpu, kind, tokens, share, m, used, experts, n, k):
    skip_unless_it_runs(gpu, fused=True)
    check_product(gpu, kind, share, m, used, experts, n, k, tokens, per_token=False, fused=True)


@pytest.mark.parametrize("used", [1, 3])
def test_rows_are_brought_into_the_order_of_the_choices(gpu, used):
    x = np.random.default_rng(used).standard_normal((70, 64)).astype(np.float16)
    chosen = shares("skewed", 70 * used, 9)
    order, _, _ = grouped(gpu, chosen, 9, 64)
    out = gpu.poisoned((70 * used, 64), "f16")
    launch.router_rows(gpu.device, gpu.put(x), order, out)
    np.testing.assert_array_equal(gpu.get(out), np.repeat(x, used, 0)[np.argsort(chosen, kind="stable")])


@pytest.mark.parametrize("kind", launch.DECODED)
@pytest.mark.parametrize("per_token", [True, False])
def test_products_of_every_type(gpu, kind, per_token):
    check_product(gpu, kind, "skewed", 90, 2, 6, 136, 512, launch.expert_tiles(kind)[0], per_token)
    if launch.expert_tiles(kind) == launch.EXPERT_TILES[:1] and not kind.endswith(("K", "xs")):
        # Rows that end within a step.
        check_product(gpu, kind, "skewed", 9, 2, 3, 130, 96, 64, per_token)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", launch.DECODED)
@pytest.mark.parametrize("per_token", [True, False])
def test_products_of_few_choices(gpu, kind, share, per_token):
    check_product(gpu, kind, share, 3, 4, 9, 50, 512, None, per_token)


def test_a_combination_is_the_weighted_sum(gpu):
    random = np.random.default_rng(0)
    y, weights = random.standard_normal((5, 3, 64)).astype(np.float16), random.random((5, 3)).astype(np.float32)
    place = random.permutation(15).astype(np.int32)
    expected = np.einsum("mun,mu->mn", y.astype(np.float64), weights)
    moved = np.empty_like(y.reshape(15, 64))
    moved[place] = y.reshape(15, 64)
    for given, where in ((y, None), (moved.reshape(y.shape), gpu.put(place))):
        out = gpu.poisoned((5, 64), "f16")
        launch.combine(gpu.device, gpu.put(given), where, gpu.put(weights), out)
        assert distance(gpu.get(out), expected) < 5e-4
