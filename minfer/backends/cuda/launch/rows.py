"""The position, and the cache's new rows."""

from __future__ import annotations

from ..arrays import DeviceArray
from ..device import Device
from .checks import blocks, expect


def set_position(device: Device, state: DeviceArray, position: int) -> None:
    device.kernel("state", "fill_position", "Pi", 32)(device.stream_handle, (1, 1, 1), state.pointer, position)


def kv_write(
    device: Device, k: DeviceArray, v: DeviceArray, keys: DeviceArray, values: DeviceArray, state: DeviceArray
) -> None:
    """k and v [m, kv_heads, width] into a layer's keys and values [positions, kv_heads, width]; v with its bias."""
    m, k_width, v_width = k.shape[0], k.shape[1] * k.shape[2], v.shape[1] * v.shape[2]
    expect("new keys", k, "f16", (m, None, None), 8)
    expect("new values", v, "f16", (m, None, None), 8)
    kernel = device.kernel("kv_write", "kv_write", "PPPPPPiiiii", 256)
    kernel(
        device.stream_handle,
        blocks(m * (k_width + v_width) // 8, 256),
        k.pointer,
        v.pointer,
        0 if v.bias is None else v.bias.pointer,
        keys.pointer,
        values.pointer,
        state.pointer,
        m,
        k_width,
        v_width,
        k_width,
        v_width,
    )
