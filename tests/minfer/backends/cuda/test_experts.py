"""What a mixture launches, on a device that only takes down what is launched."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from minfer.backends import Matrix
from minfer.backends.cuda import expert_fused, fused, launch
from minfer.backends.cuda.arrays import Arena, DeviceArray
from minfer.backends.cuda.experts import Experts, tile_for
from minfer.kernels import KernelError
from tests.minfer.backends.cuda.test_launch import Recorder

LEAST_SHARED = 99 * 1024
"""What every GPU from 8.0 on gives a block of threads: 8.6, 8.9 and 12.0 give no more."""


@pytest.fixture
def mixture():
    device = Recorder()
    device.target = "sm_80"
    return device, Experts(device, Arena(lambda size: SimpleNamespace(pointer=1 << 20)), {"fused": True})


def matrix(kind, experts=128, n=768, k=2048):
    return Matrix(SimpleNamespace(shape=(experts, n, k)), SimpleNamespace(kind=kind, pointer=4096))


def run(mixture, m, kinds, used=8):
    device, experts = mixture
    routing = experts.route(DeviceArray(4096, (m, 128), "f32"), used)
    x = DeviceArray(4096, (m, 2048), "f16")
    out = [experts.products(matrix(kind), x, routing) for kind in kinds]
    assert all(array.shape == (m, used, 768) for array in out)
    down = experts.products(matrix("q4_K", n=2048, k=768), out[0], routing)
    assert experts.combine(down, routing).shape == (m, 2048)
    return [name for name, *_ in device.launches]


def test_many_tokens_are_grouped_once_and_each_product_is_one_launch(mixture):
    assert run(mixture, 512, ("q4_K", "q4_K")) == [
        "router_top", "router_group", "gemm_q4_K_experts_64", "gemm_q4_K_experts_64", "gemm_q4_K_experts_64", "moe_combine",
    ]  # fmt: skip


def test_a_type_with_small_tiles_only_has_them_beside_large_ones(mixture):
    names = run(mixture, 4096, ("q4_K", "q8_0"))
    assert names[1:5] == ["router_group", "gemm_q4_K_experts_128", "router_group", "gemm_q8_0_experts_64"]
    assert names[5:] == ["gemm_q4_K_experts_128", "moe_combine"]


def test_few_tokens_go_through_matrix_vector_products_whose_experts_stand_on_the_device(mixture):
    assert run(mixture, launch.FEW_ROWS, ("q4_K", "q6_K")) == [
        "router_top", "mmv_q4_K_experts", "mmv_q6_K_experts", "mmv_q4_K_experts", "moe_combine",
    ]  # fmt: skip
    device, _ = mixture
    assert [grid[1] for name, grid, *_ in device.launches if name.startswith("mmv")] == [launch.FEW_ROWS * 8] * 3


@pytest.mark.parametrize("kind", launch.DECODED)
def test_tiles_fit_every_gpu_and_cover_every_share(kind):
    device = Recorder()
    for tokens in launch.expert_tiles(kind):
        order, tiles = DeviceArray(4096, (40,), "i32"), DeviceArray(4096, (40 // tokens + 9, 4), "i32")
        x, out = DeviceArray(4096, (40, 256), "f16"), DeviceArray(4096, (40, 130), "f16")
        launch.expert_gemm(device, kind, 4096, x, order, tiles, tokens, 0, out)
        name, grid, _, shared = device.launches[-1]
        assert (name, grid) == (f"gemm_{kind}_experts_{tokens}", (2, tiles.shape[0], 1))
        assert shared + 2 * 4 * tokens <= LEAST_SHARED


@pytest.mark.parametrize("tokens", launch.EXPERT_TILES)
def test_the_places_of_an_experts_tiles_never_meet_those_of_the_next(tokens):
    """The rule of kernels/experts.cu: expert e's tiles begin at place first / tokens + e."""
    random = np.random.default_rng(tokens)
    for counts in (*random.integers(0, 3 * tokens, (50, 9)), np.zeros(9, int), np.full(9, tokens), np.eye(9, dtype=int)[4]):
        first = np.concatenate(([0], np.cumsum(counts)))
        begin = first // tokens + np.arange(10)
        assert (begin[1:] - begin[:-1] >= -(-counts // tokens)).all()
        assert begin[-1] == counts.sum() // tokens + 9


def test_a_product_that_there_is_no_kernel_for_is_refused():
    order, tiles = DeviceArray(4096, (6,), "i32"), DeviceArray(4096, (9, 4), "i32")
    some = DeviceArray(4096, (6, 256), "f16")
    with pytest.raises(KernelError, match="128 a tile, stored as q8_0"):
        launch.expert_gemm(Recorder(), "q8_0", 4096, some, order, tiles, 128, 0, some)
    with pytest.raises(KernelError, match="4 experts a token of 3"):
        chosen, weights = DeviceArray(4096, (2, 4), "i32"), DeviceArray(4096, (2, 4), "f32")
        launch.router_top(Recorder(), DeviceArray(4096, (2, 3), "f32"), chosen, weights)


def array(dtype, *shape):
    return DeviceArray(4096, shape, dtype)


ORDER, TILES, X, OUT = array("i32", 6), array("i32", 9, 4), array("f16", 6, 256), array("f16", 6, 16)
FOUR, ODD = array("f16", 4, 256), array("f16", 6, 264)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda d: launch.router_group(d, array("f32", 2, 3), ORDER, ORDER, TILES, 9, 64), "the chosen experts is f32"),
        (lambda d: launch.router_rows(d, X, array("f32", 6), X), "the order of choices is f32"),
        (lambda d: launch.router_rows(d, FOUR, ORDER, X), "experts: 6 choices of 4 rows, expected a multiple of them"),
        (lambda d: launch.expert_gemm(d, "q4_K", 0, X, array("i32", 5), TILES, 64, 0, OUT), "the order of choices is i32"),
        (lambda d: launch.expert_gemm(d, "q4_K", 0, X, ORDER, ORDER, 64, 0, OUT), "the tiles of choices is i32"),
        (lambda d: launch.expert_gemm(d, "q6_K", 0, ODD, ORDER, TILES, 64, 0, OUT), "the experts' input is f16"),
        (lambda d: launch.expert_mmv(d, "q4_K", 0, ODD, ORDER, OUT), "the experts' input is f16"),
        (lambda d: launch.expert_mmv(d, "q8_0", 0, FOUR, ORDER, OUT), "experts: 6 choices of 4 rows"),
        (lambda d: launch.expert_mmv(d, "q8_0", 0, X, array("f32", 6), OUT), "the chosen experts is f32"),
        (
            lambda d: launch.combine(d, array("f16", 2, 3, 16), None, array("f32", 2, 3), array("f16", 3, 16)),
            "the sum of the experts' results is f16",
        ),
        (
            lambda d: launch.combine(d, array("f16", 2, 3, 16), array("i32", 5), array("f32", 2, 3), array("f16", 2, 16)),
            "the places of choices is i32",
        ),
    ],
)
def test_what_a_kernel_would_read_or_write_beyond_is_refused(call, error):
    device = Recorder()
    with pytest.raises(KernelError, match=f"^{error}"):
        call(device)
    assert not device.launches


def test_the_tile_grows_with_the_share_of_an_expert():
    assert tile_for("q4_K", 512 * 8, 128) == 64
    assert tile_for("q4_K", 4096 * 8, 128) == 128
    assert tile_for("q8_0", 4096 * 8, 128) == 64


H200 = 132


def test_experts_are_unpacked_on_hopper_where_they_have_choices_enough(mixture):
    device, _ = mixture
    assert not expert_fused.can(device, "q4_K", 768, 2048)
    device.target = fused.TARGET
    assert expert_fused.can(device, "q6_K", 768, 2048)
    assert not expert_fused.can(device, "q8_0", 768, 2048)
    assert not expert_fused.can(device, "q4_K", 768, 2048 + 64)
    assert expert_fused.tile_for(8, 128, 768, 2048, H200) is None
    assert expert_fused.tile_for(3325 * 8, 128, 768, 2048, H200) == 256


@pytest.mark.parametrize("kind", fused.BLOCK)
def test_a_block_has_room_for_its_list_of_tiles(kind):
    for choices, experts in ((8192 * 8, 128), (1 << 20, 128), (1 << 20, 600)):
        tokens = expert_fused.tile_for(choices, experts, 768, 2048, H200)
        if tokens is not None:
            assert fused.shared_bytes(kind, tokens) + 8 * (choices // tokens + experts) <= 227 * 1024
