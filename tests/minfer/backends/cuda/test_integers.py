"""When activations are quantised, on a device that only takes down what is launched."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from minfer.backends.cuda import integers
from minfer.backends.cuda.arrays import Arena, DeviceArray
from tests.minfer.backends.cuda.test_launch import Recorder


@pytest.mark.parametrize(
    ("multiply", "quantise"),
    [
        (lambda device, arena, x, out: integers.mmq(device, arena, "q6_K", 4096, x, out), "quantise_q8_1"),
        (lambda device, arena, x, out: integers.bt(device, arena, 4096, x, out), "quantise_q8_1_bt"),
    ],
)
def test_one_quantisation_serves_all_products_with_the_same_activations(multiply, quantise):
    device = Recorder()
    arena = Arena(lambda size: SimpleNamespace(pointer=1 << 20))
    x = DeviceArray(4096, (300, 512), "f16")
    for n in (256, 128, 128):
        multiply(device, arena, x, DeviceArray(8192, (300, n), "f16"))
    names = [name for name, *_ in device.launches]
    assert names.count(quantise) == 1
    assert len(names) == 4
