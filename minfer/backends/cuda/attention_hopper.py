"""Attention of many queries on Hopper's warpgroup matrix units."""

from __future__ import annotations

from . import launch
from .arrays import DeviceArray
from .device import Device
from .fused import TARGET
from .tensor_map import NBYTES, f16_boxes

QUERIES = 128
"""Of a tile, as in kernels/attention_hopper.cu; a tile's keys and stages below."""
KEYS = {64: 128, 128: 128, 256: 64}
"""By head width."""
_STAGES = 2


def can(device: Device, width: int, v_width: int, softcap: float | None) -> bool:
    """Whether heads of these widths can go this way."""
    return device.target == TARGET and width == v_width and width in KEYS and softcap is None


def attention(
    device: Device,
    q: DeviceArray,
    keys: DeviceArray,
    values: DeviceArray,
    out: DeviceArray,
    state: DeviceArray,
    scale: float,
    window: int | None,
) -> None:
    """Causal attention of q f16 [m, heads, width] into out f16 [m, heads * width].

    Keys and values are a layer of the cache, f16 [capacity, kv_heads, width].
    """
    m, heads, kv_heads, width, _ = launch.attention_shapes(q, keys, values, multiple=64, alike=True)
    capacity = keys.shape[0]
    launch.expect("attention's result", out, "f16", (m, heads * width))
    rows = KEYS[width]
    # Queries, and so many stages of keys and values; the stages must begin at a multiple of 1024 bytes.
    shared = (QUERIES + 2 * _STAGES * rows) * width * 2 + 1024
    layout = f"{NBYTES}s{NBYTES}s{NBYTES}sPPiiiif"
    kernel = device.kernel("attention_hopper", f"attention_hopper_{width}", layout, 384, shared)
    kernel(
        device.stream_handle,
        (heads, -(-m // QUERIES), 1),
        f16_boxes(q.pointer, m, heads * width, QUERIES),
        f16_boxes(keys.pointer, capacity, kv_heads * width, rows),
        f16_boxes(values.pointer, capacity, kv_heads * width, rows),
        out.pointer,
        state.pointer,
        m,
        heads,
        kv_heads,
        window or 0,
        scale,
    )
