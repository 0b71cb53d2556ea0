"""Keys and values of all positions, on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import DeviceArray
from .device import Device


@dataclass(slots=True)
class CudaKvCache:
    """Keys and values f16 [layers, capacity, kv_heads, width]."""

    capacity: int
    keys: DeviceArray
    values: DeviceArray
    memory: Any

    def layer(self, index: int) -> tuple[DeviceArray, DeviceArray]:
        """Keys and values [capacity, kv_heads, width] of one layer."""
        return _layer(self.keys, index), _layer(self.values, index)


def make_cache(device: Device, layers: int, capacity: int, kv_heads: int, key_length: int, value_length: int) -> CudaKvCache:
    """A cache for ``capacity`` positions. Raises KernelError where the device has no room for it."""
    sizes = [layers * capacity * kv_heads * width * 2 for width in (key_length, value_length)]
    memory = device.allocate(sum(sizes))
    return CudaKvCache(
        capacity,
        DeviceArray(memory.pointer, (layers, capacity, kv_heads, key_length), "f16"),
        DeviceArray(memory.pointer + sizes[0], (layers, capacity, kv_heads, value_length), "f16"),
        memory,
    )


def _layer(whole: DeviceArray, index: int) -> DeviceArray:
    _, capacity, heads, width = whole.shape
    return DeviceArray(whole.pointer + index * capacity * heads * width * 2, (capacity, heads, width), "f16")
