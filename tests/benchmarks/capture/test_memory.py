"""Peaks of memory, and what a CUDA context takes, told by a driver that is made up here."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from benchmarks.capture import memory

MIB = 1 << 20


class Driver:
    """libcuda: retaining the context takes 500 MiB."""

    def __init__(self, status=0):
        self.used, self.status, self.retained = 600 * MIB, status, 0

    def cuInit(self, flags):  # noqa: N802 -- the driver's own spelling
        return self.status

    def cuDeviceGet(self, device, ordinal):  # noqa: N802
        assert ordinal == 0
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device):  # noqa: N802
        self.retained += 1
        if self.retained == 1:
            self.used += 500 * MIB
        return 0


@pytest.fixture
def machine(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    monkeypatch.setattr(memory, "first_visible_device", lambda: SimpleNamespace(memory_used_bytes=lambda: driver.used))
    return driver


def test_the_context_is_made_once_and_counts_to_nobody_after_that(machine):
    assert memory.open_cuda_context() == 500 * MIB
    assert memory.open_cuda_context() == 0
    peak = memory.PeakMemory(on_device=True)
    machine.used += 70 * MIB
    assert peak.bytes() == 70 * MIB


def test_without_a_usable_driver_nothing_is_known(machine, monkeypatch):
    machine.status = 100
    assert memory.open_cuda_context() is None
    assert machine.retained == 0

    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert memory.open_cuda_context() is None
