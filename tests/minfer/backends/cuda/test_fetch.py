"""Results come into page-locked memory of their own, or into any where they are large; nothing is read before the wait."""

from __future__ import annotations

import ctypes
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from minfer.backends.cuda import device as device_module
from minfer.backends.cuda.device import Device


class CudaError(RuntimeError):
    """As CuPy raises it."""


class Copies(Device):
    """A device whose memory is this process's: queued copies happen when the stream is waited for."""

    def __init__(self):
        self.queued, self.waits, self.alive, self.sizes = [], 0, [], []
        self._held = None
        self._handle = ctypes.c_void_p(7)
        self.stream = SimpleNamespace(ptr=7, synchronize=self.wait)
        runtime = SimpleNamespace(memcpyAsync=self.queue, CUDARuntimeError=CudaError)
        self.cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, alloc_pinned_memory=self.pinned))

    def queue(self, to, source, nbytes, kind, stream):
        assert (kind, stream) == (2, 7)
        self.queued.append((to, source, nbytes))

    def wait(self):
        self.waits += 1
        for copy in self.queued:
            ctypes.memmove(*copy)
        self.queued.clear()

    def pinned(self, nbytes):
        memory = (ctypes.c_char * nbytes)()
        self.alive.append(weakref.ref(memory))
        self.sizes.append(nbytes)
        return memory


@pytest.mark.parametrize("limit", [4 << 20, 64])
def test_all_parts_arrive_after_one_wait(monkeypatch, limit):
    monkeypatch.setattr(device_module, "_PAGE_LOCKED_BYTES", limit)
    device = Copies()
    first, second = np.arange(1000, dtype=np.float32), np.array([5], np.int32)
    for _ in range(2):
        here, flag = device.host_array((10, 100), np.float32), device.host_array((1,), np.int32)
        device.fetch((here, first.ctypes.data), (flag, second.ctypes.data))
        np.testing.assert_array_equal(here, first.reshape(10, 100))
        assert here.flags.writeable and here.dtype == np.float32
        assert flag[0] == 5
    assert device.waits == 2
    # The flag is small at either limit; nothing is copied through a stage of its own.
    assert device.sizes == ([4000, 4] * 2 if limit > 64 else [4, 4])


def test_a_result_keeps_its_memory_while_any_view_of_it_lives():
    device = Copies()
    view = device.host_array((2, 8), np.float32)[-1]
    view[:] = 3.0
    (alive,) = device.alive
    assert alive() is not None
    np.testing.assert_array_equal(view, np.full(8, 3.0, np.float32))
    del view
    assert alive() is None


def test_where_no_page_can_be_locked_a_result_comes_all_the_same():
    device = Copies()

    def refused(nbytes):
        raise CudaError("out of memory")

    device.cupy.cuda.alloc_pinned_memory = refused
    source, here = np.arange(4, dtype=np.float32), device.host_array((4,), np.float32)
    device.fetch((here, source.ctypes.data))
    np.testing.assert_array_equal(here, source)


def test_an_empty_result_asks_for_no_memory():
    device = Copies()
    assert device.host_array((0, 5), np.float32).shape == (0, 5)
    assert device.sizes == []


def test_what_was_held_back_is_queued_before_a_result_is_fetched():
    device = Copies()
    order = []
    device.hold(lambda: order.append("held"))
    queue = device.queue
    device.cupy.cuda.runtime.memcpyAsync = lambda *copy: (order.append("copy"), queue(*copy))
    source, here = np.ones(4, np.float32), np.zeros(4, np.float32)
    device.fetch((here, source.ctypes.data))
    assert order == ["held", "copy"]
