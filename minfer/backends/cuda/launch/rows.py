"""Rows in and out: the position, the cache's new rows, the experts' rows."""

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


def move_rows(device: Device, way: str, x: DeviceArray, rows: DeviceArray, out: DeviceArray) -> None:
    """``way`` "gather": out[i] = x[rows[i]]; "scatter": out[rows[i]] = x[i]; f16 rows of a common width."""
    width = x.shape[-1]
    expect(f"the rows to {way}", x, "f16", (None, width), 8)
    kernel = device.kernel("experts", f"{way}_rows", "PPPii", 256)
    count = rows.shape[0]
    kernel(device.stream_handle, blocks(count * width // 8, 256), x.pointer, rows.pointer, out.pointer, count, width)


def combine(device: Device, y: DeviceArray, weights: DeviceArray, out: DeviceArray) -> None:
    """Weighted sum of y [m, used, width] over used, into out [m, width]."""
    m, used, width = y.shape
    expect("the experts' results", y, "f16", (m, used, width), 8)
    expect("the router's weights", weights, "f32", (m, used))
    kernel = device.kernel("experts", "moe_combine", "PPPiii", 256)
    kernel(device.stream_handle, blocks(m * width // 8, 256), y.pointer, weights.pointer, out.pointer, m, used, width)
