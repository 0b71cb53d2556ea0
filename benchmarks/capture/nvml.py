"""NVIDIA's management library, read lazily: clocks, temperature, power, throttle reasons and processes of one GPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

_T = TypeVar("_T")

_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
}
"""Bits of nvmlClocksEventReasons (nvml.h). Idle, set clocks, sync boost and display clocks are no throttling."""


@dataclass(frozen=True, slots=True)
class GpuState:
    clock_mhz: dict[str, float] = field(default_factory=dict)
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    processes: set[int] = field(default_factory=set)
    """Ids of compute processes as the driver counts them: in a container, the host's."""
    utilisation: float | None = None
    """Share of the last fraction of a second in which a kernel ran, 0..1."""


class Device:
    """One GPU. What its driver refuses to tell (MIG, permissions) is left empty."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle

    def state(self) -> GpuState:
        library, handle = self._library, self._handle
        clocks = {
            "sm": self._ask(lambda: float(library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM))),
            "memory": self._ask(lambda: float(library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_MEM))),
        }
        power = self._ask(lambda: float(library.nvmlDeviceGetPowerUsage(handle)))
        # Drivers since 535 call it event reasons and may no longer know the older name.
        reasons = self._ask(lambda: int(library.nvmlDeviceGetCurrentClocksEventReasons(handle)))
        if reasons is None:
            reasons = self._ask(lambda: int(library.nvmlDeviceGetCurrentClocksThrottleReasons(handle))) or 0
        used = self._ask(lambda: float(library.nvmlDeviceGetUtilizationRates(handle).gpu))
        processes = self._ask(lambda: {int(p.pid) for p in library.nvmlDeviceGetComputeRunningProcesses(handle)})
        return GpuState(
            clock_mhz={name: clock for name, clock in clocks.items() if clock is not None},
            temperature_c=self._ask(lambda: float(library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU))),
            power_w=power / 1000 if power is not None else None,
            throttle_reasons=tuple(name for bit, name in _REASONS.items() if reasons & bit),
            processes=processes or set(),
            utilisation=used / 100 if used is not None else None,
        )

    def compute_capability(self) -> tuple[int, int] | None:
        """(9, 0) of an H200; None where the driver does not tell."""
        found = self._ask(lambda: self._library.nvmlDeviceGetCudaComputeCapability(self._handle))
        return None if found is None else (int(found[0]), int(found[1]))

    def memory_used_bytes(self) -> int | None:
        """Memory of the device in use, by all processes together; None where the driver does not tell."""
        return self._ask(lambda: int(self._library.nvmlDeviceGetMemoryInfo(self._handle).used))

    def _ask(self, question: Callable[[], _T]) -> _T | None:
        try:
            return question()
        except self._library.NVMLError:
            return None


def first_visible_device(library: Any = None) -> Device | None:
    """The GPU that a process started now would use first; None where there is none or no driver."""
    if library is None:
        try:
            import pynvml
        except ImportError:
            return None
        library = pynvml
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if visible in ("", "-1"):
        return None
    try:
        library.nvmlInit()
        if visible.isdigit():
            handle = library.nvmlDeviceGetHandleByIndex(int(visible))
        else:
            handle = library.nvmlDeviceGetHandleByUUID(visible)
    except library.NVMLError:
        return None
    return Device(library, handle)
