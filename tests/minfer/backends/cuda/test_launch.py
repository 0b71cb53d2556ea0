"""What launchers check before they launch; the results of kernels are checked in tests/gpu."""

from __future__ import annotations

import pytest

from minfer.backends.cuda import attention_hopper, launch
from minfer.backends.cuda.arrays import DeviceArray
from minfer.kernels import KernelError


class Recorder:
    """Stands for the device: takes down what would be launched."""

    stream_handle = None
    target = "sm_90a"
    multiprocessors = 132

    def __init__(self):
        self.launches = []

    def kernel(self, source, name, layout, threads, shared=0):
        def call(stream, grid, *arguments):
            assert len(arguments) == len(layout)
            self.launches.append((name, grid, threads, shared))

        return call


def f16(*shape, pointer=4096):
    return DeviceArray(pointer, shape, "f16")


def f32(*shape, pointer=4096):
    return DeviceArray(pointer, shape, "f32")


STATE = DeviceArray(4096, (1,), "i32")


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda d: launch.rms_norm(d, f32(3, 8), f32(16), f16(3, 8), 1e-6), "a norm's weight"),
        (lambda d: launch.rms_norm(d, f32(3, 8), f32(8), f32(3, 8), 1e-6), "a norm's result"),
        (lambda d: launch.add_residual(d, f16(3, 8), f16(3, 8)), "a residual"),
        (lambda d: launch.add_residual(d, f32(3, 8), f16(2, 8)), "a residual"),
        (lambda d: launch.gated(d, f16(3, 8), f16(3, 16), "silu", 1.0, STATE), "the gated values"),
        (lambda d: launch.gated(d, f16(3, 12), f16(3, 12), "silu", 1.0, STATE), "the gate"),
        (lambda d: launch.mmv(d, "q4_K", 4096, f16(1, 252), f16(1, 8)), "the matrix-vector product's input"),
        (lambda d: launch.mmv(d, "q4_K", 4096, f16(1, 256, pointer=4098), f16(1, 8)), "the matrix-vector product's input"),
    ],
)
def test_a_wrong_shape_type_or_alignment_names_the_tensor(call, named):
    device = Recorder()
    with pytest.raises(KernelError, match=f"^{named} is .*expected"):
        call(device)
    assert not device.launches


def test_the_decode_attention_splits_a_long_cache_in_powers_of_two():
    assert [launch.splits_for(end) for end in (1, 64, 65, 128, 129, 4096)] == [1, 1, 2, 2, 4, 64]


def attention(device, width, softcap=None, flash=True, m=300):
    cache = f16(512, 2, width)
    launch.attention(device, f16(m, 8, width), cache, cache, f16(m, 8 * width), STATE, 0.1, None, softcap, flash)
    return device.launches[-1]


def test_flash_attention_takes_the_widths_it_has_tiles_for():
    device = Recorder()
    assert attention(device, 128) == ("attention_fa_128", (3, 8, 1), 128, (128 + 4 * 64) * 256)
    assert attention(device, 128, softcap=30.0)[0:2] == ("attention_fa_128_cap", (5, 8, 1))
    assert attention(device, 80)[0] == attention(device, 128, flash=False)[0] == "attention_plain"


def plain(device, q, keys, values):
    launch.attention(device, q, keys, values, f16(3, 8 * 128), STATE, 0.1, None, None, True)


def few(device, q, keys, values):
    launch.attention_few(device, q, keys, values, f32(3, 8, 1, 130), f16(3, 8 * 128), STATE, 0.1, None, None)


def hopper(device, q, keys, values):
    attention_hopper.attention(device, q, keys, values, f16(3, 8 * 128), STATE, 0.1, None)


Q, CACHE = f16(3, 8, 128), f16(9, 2, 128)


@pytest.mark.parametrize("kernel", [plain, few, hopper])
@pytest.mark.parametrize(
    ("q", "keys", "values", "named", "expected"),
    [
        (f32(3, 8, 128), CACHE, CACHE, "queries is f32", r"f16 \(3, 8, 128\)"),
        (f16(3, 8, 127), f16(9, 2, 127), f16(9, 2, 127), "queries is f16", r"f16 .*multiple of (2|64) "),
        (Q, f16(9, 2, 64), CACHE, "cached keys is f16", r"f16 \(any, 2, 128\)"),
        (Q, f16(9, 4, 128), CACHE, "cached keys is f16", r"f16 \(any, 2, 128\)"),
        (Q, CACHE, f32(9, 2, 128), "cached values is f32", r"f16 \(9, 2, 128\)"),
        (Q, CACHE, f16(8, 2, 128), "cached values is f16", r"f16 \(9, 2, 128\)"),
    ],
)
def test_attention_names_what_does_not_go_with_the_queries(kernel, q, keys, values, named, expected):
    device = Recorder()
    with pytest.raises(KernelError, match=f"^{named} .*, expected {expected}"):
        kernel(device, q, keys, values)
    assert not device.launches


def test_only_hopper_wants_values_as_wide_as_keys():
    narrow = f16(9, 2, 64)
    assert launch.attention_shapes(Q, CACHE, narrow) == (3, 8, 2, 128, 64)
    with pytest.raises(KernelError, match=r"^cached values .*, expected f16 \(9, 2, 128\), .*multiple of 64"):
        hopper(Recorder(), Q, CACHE, narrow)


def test_hopper_takes_the_widths_it_has_kernels_for():
    device = Recorder()
    assert attention_hopper.can(device, 128, 128, None)
    assert not attention_hopper.can(device, 128, 64, None)
    assert not attention_hopper.can(device, 80, 80, None)
    assert not attention_hopper.can(device, 128, 128, 30.0)
    device.target = "sm_120"
    assert not attention_hopper.can(device, 128, 128, None)


def test_wide_heads_are_summed_in_slices():
    device = Recorder()
    assert attention(device, 512) == ("attention_fa_512", (5, 8, 2), 128, 160 * 1024)
    assert attention(device, 512, softcap=30.0)[:2] == ("attention_fa_512_cap", (5, 8, 2))
    assert attention(device, 600)[:2] == ("attention_plain_wide", (600, 3, 1))
    device.target = "sm_120"
    assert attention(device, 512)[:2] == ("attention_plain_wide", (600, 2, 1))
    cache = f16(512, 2, 320)
    launch.attention_few(device, f16(2, 8, 320), cache, cache, f32(2, 8, 4, 322), f16(2, 2560), STATE, 0.1, None, None)
    assert [launched[:2] for launched in device.launches[-2:]] == [
        ("attention_decode_wide", (16, 4, 2)),
        ("attention_combine", (8, 2, 1)),
    ]


@pytest.mark.parametrize(("target", "stages"), [("sm_90a", 2), ("sm_80", 2), ("sm_120", 1), ("sm_86", 1)])
def test_bt_asks_for_no_more_shared_memory_than_the_target_gives_a_block(target, stages):
    device = Recorder()
    device.target = target
    q, scales = DeviceArray(4096, (384, 512), "u8"), f32(16, 384, 2)
    launch.bt(device, 4096, q, scales, f16(300, 256), 1.0)
    assert device.launches == [("gemm_q4_K_bt", (2, 3, 1), 256, stages * 59392 + 8192)]


def test_grouped_products_take_the_tiles_of_all_their_rows():
    device = Recorder()
    products = [launch.Product("q4_K", 4096, f16(1, n), None) for n in (100, 50)]
    launch.mmv_group(device, f16(1, 512), products)
    launch.mmv_group(device, f16(1, 512), [*products, launch.Product("q6_K", 4096, f16(1, 16384), f32(16384))])
    assert device.launches == [
        ("mmv_q4_K_group", (11, 1, 1), 224, 7 * 12288),
        ("mmv_group", (1035, 1, 1), 128, 4 * 13056),
    ]


def test_grouped_products_want_whole_blocks():
    with pytest.raises(KernelError, match=r"the matrix-vector products' input is f16 .*multiple of 256"):
        launch.mmv_group(Recorder(), f16(1, 384), [launch.Product("q4_K", 4096, f16(1, 16), None)])


def test_bt_refuses_activations_that_are_not_padded():
    with pytest.raises(KernelError, match="the product's quantised input is u8"):
        launch.bt(Recorder(), 4096, DeviceArray(4096, (300, 512), "u8"), f32(16, 300, 2), f16(300, 256), 1.0)
