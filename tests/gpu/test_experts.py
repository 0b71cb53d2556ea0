"""Routing and products of a mixture of experts, over ragged shares, against NumPy and float64."""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends.cuda import expert_fused, launch
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


def check_product(gpu, kind, share, m, used, experts, n, k, tokens, per_token, fused=False):
    random = np.random.default_rng(m + n + k)
    raw, dense = random_blocks(kind, experts * n, k, random)
    dense = dense.reshape(experts, n, k)
    chosen = shares(share, m * used, experts)
    rows = m if per_token else m * used
    x = (random.standard_normal((rows, k)) * np.exp(random.standard_normal((rows, 1)))).astype(np.float16)
    out = gpu.poisoned((m * used, n), "f16")
    # Nothing beyond the last matrix may be read: the allocation ends there.
    weights = gpu.put(raw)
    inputs = (np.repeat(x, used, 0) if per_token else x).astype(np.float64)
    if tokens is None:
        launch.expert_mmv(gpu.device, kind, weights.pointer, scaled(gpu.put(x)), gpu.put(chosen), out)
    else:
        order, _, tiles = grouped(gpu, chosen, experts, tokens)
        given = scaled(gpu.put(x if per_token else x[np.argsort(chosen, kind="stable")]))
        if fused:
            expert_fused.product(gpu.device, kind, weights.pointer, experts, given, tiles, tokens, out)
        else:
            share = used if per_token else 0
            launch.expert_gemm(gpu.device, kind, weights.pointer, given, order, tiles, tokens, share, out)
        inputs, chosen = (values[np.argsort(chosen, kind="stable")] for values in (inputs, chosen))
    expected = np.empty((m * used, n))
    for expert in np.unique(chosen):
        its = chosen == expert
        expected[its] = 2.0 * inputs[its] @ dense[expert].astype(np.float64).T
    # Weights rounded up to three times to f16 (2^-11 each), the result once; f32 sums.
    assert distance(gpu.get(out), expected) < 1e-3


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
    if gpu.device.target != TARGET:
        pytest.skip(f"these matrix instructions are of compute capability 9.0, this GPU's target is {gpu.device.target}")
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
