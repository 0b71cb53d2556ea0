"""What launchers check before they launch; the results of kernels are checked in tests/gpu."""

from __future__ import annotations

import pytest

from minfer.backends.cuda import launch
from minfer.backends.cuda.arrays import DeviceArray
from minfer.kernels import KernelError


class Recorder:
    """Stands for the device: takes down what would be launched."""

    stream_handle = None

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
    assert [launch.splits_for(end) for end in (1, 256, 257, 512, 513, 4096)] == [1, 1, 2, 2, 4, 16]
