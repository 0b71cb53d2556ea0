"""Which matrix-vector products share a launch, on a device that takes down what is launched."""

from __future__ import annotations

import pytest

from minfer.backends.cuda import vectors
from minfer.backends.cuda.arrays import DeviceArray
from minfer.backends.cuda.device import Device
from minfer.backends.cuda.vectors import VectorProducts


class Bare(Device):
    """A device that only holds back and releases."""

    def __init__(self):
        self._held, self._handle = None, "stream"


@pytest.fixture
def machine(monkeypatch):
    launched = []

    def mmv(device, kind, weights, x, out, bias):
        assert device.stream_handle == "stream"
        launched.append((weights,))

    def group(device, x, products):
        assert device.stream_handle == "stream"
        launched.append(tuple(product.weights for product in products))

    monkeypatch.setattr(vectors.launch, "mmv", mmv)
    monkeypatch.setattr(vectors.launch, "mmv_group", group)
    device = Bare()
    products = VectorProducts(device)
    products.gathers = True

    def product(weights, x, kind="q4_K", dtype="f16"):
        products(kind, weights, x, DeviceArray(4096, (1, 256), dtype), None)

    return device, products, product, launched


def x():
    return DeviceArray(4096, (1, 256), "f16")


def test_products_of_one_input_share_a_launch_when_the_stream_is_next_asked_for(machine):
    device, _, product, launched = machine
    one = x()
    for weights in (1, 2, 3):
        product(weights, one)
    assert launched == []
    assert device.stream_handle == "stream"
    assert launched == [(1, 2, 3)]
    assert device.stream_handle == "stream"
    assert launched == [(1, 2, 3)]


def test_another_input_or_a_fourth_product_begins_a_new_launch(machine):
    device, _, product, launched = machine
    first, second = x(), x()
    for weights in (1, 2, 3, 4):
        product(weights, first)
    product(5, second)
    device.release()
    assert launched == [(1, 2, 3), (4,), (5,)]


def test_logits_and_types_that_share_no_launch_come_after_what_was_held_back(machine):
    _, _, product, launched = machine
    one = x()
    product(1, one)
    product(2, one, kind="q8_0")
    product(3, one, dtype="f32")
    assert launched == [(1,), (2,), (3,)]


def test_where_operations_are_watched_each_product_is_its_own_launch(machine):
    _, products, product, launched = machine
    products.gathers = False
    one = x()
    product(1, one)
    product(2, one)
    assert launched == [(1,), (2,)]
