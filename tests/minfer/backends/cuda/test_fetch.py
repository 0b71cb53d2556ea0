"""Results come to the host through page-locked memory, or directly where they are large; nothing is read before the wait."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from minfer.backends.cuda import device as device_module
from minfer.backends.cuda.device import Device


class Copies(Device):
    """A device whose memory is this process's: queued copies happen when the stream is waited for."""

    def __init__(self):
        self.queued, self.waits, self.alive = [], 0, []
        self._held, self._stage = None, None
        self._handle = ctypes.c_void_p(7)
        self.stream = SimpleNamespace(ptr=7, synchronize=self.wait)
        runtime = SimpleNamespace(memcpyAsync=self.queue)
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
        self.alive.append(ctypes.create_string_buffer(nbytes))
        return SimpleNamespace(ptr=ctypes.addressof(self.alive[-1]))


@pytest.mark.parametrize("limit", [4 << 20, 64])
def test_all_parts_arrive_after_one_wait(monkeypatch, limit):
    monkeypatch.setattr(device_module, "_STAGE_BYTES", limit)
    device = Copies()
    first, second = np.arange(1000, dtype=np.float32), np.array([5], np.int32)
    for _ in range(2):
        here, flag = np.full(1000, np.nan, np.float32), np.zeros(1, np.int32)
        device.fetch((here, first.ctypes.data), (flag, second.ctypes.data))
        np.testing.assert_array_equal(here, first)
        assert flag[0] == 5
    assert device.waits == 2
    assert len(device.alive) == (limit > 64)


def test_what_was_held_back_is_queued_before_a_result_is_fetched():
    device = Copies()
    order = []
    device.hold(lambda: order.append("held"))
    queue = device.queue
    device.cupy.cuda.runtime.memcpyAsync = lambda *copy: (order.append("copy"), queue(*copy))
    source, here = np.ones(4, np.float32), np.zeros(4, np.float32)
    device.fetch((here, source.ctypes.data))
    assert order == ["held", "copy"]
