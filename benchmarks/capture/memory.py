"""Peak memory: of a stretch of this process as the kernel counts it, or of the device as the driver counts it."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from .nvml import first_visible_device


class PeakMemory:
    """The memory that something takes, on the device where one is used, else of this process.

    Make one before the thing is loaded; ``bytes()`` after it has run once. Device memory is a difference of the driver's
    total, so another process's allocation meanwhile would count too (the probe tells of such processes). Call
    ``open_cuda_context`` before the first one: else whoever comes first pays for what all in this process share.
    """

    def __init__(self, on_device: bool) -> None:
        self._device = first_visible_device() if on_device else None
        self._before = self._device.memory_used_bytes() if self._device else None
        self._fresh = self._device is None and reset_peak()

    def bytes(self) -> int | None:
        """None where neither the driver nor the kernel tells."""
        if self._device is not None:
            used = self._device.memory_used_bytes()
            return None if used is None or self._before is None else max(0, used - self._before)
        return peak_bytes() if self._fresh else None


def open_cuda_context() -> int | None:
    """Make the CUDA context of the first visible GPU, for as long as this process lives; the device memory that it took.

    None where there is no driver, or nobody tells of memory.
    """
    device = first_visible_device()
    before = device.memory_used_bytes() if device else None
    context, first = ctypes.c_void_p(), ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(first), 0)
    if failed or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), first) or device is None or before is None:
        return None
    after = device.memory_used_bytes()
    return None if after is None else max(0, after - before)


def reset_peak() -> bool:
    """Start a new stretch. False where the kernel does not offer it (then no peak of a stretch can be known)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_bytes() -> int | None:
    """Largest resident size since ``reset_peak``; None where the kernel does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
