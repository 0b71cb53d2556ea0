"""Attention: flash or plain for many queries, split over blocks for a few."""

from __future__ import annotations

from ....kernels import KernelError
from ..arrays import DeviceArray
from ..device import Device
from .checks import blocks, expect

_SPAN = 64
"""Cache positions that one block of the decode attention takes."""
_FA_TILES = {
    ("64", False): (128, 64),
    ("64", True): (128, 64),
    ("128", False): (128, 64),
    ("128", True): (64, 64),
    ("256", False): (64, 32),
    ("256", True): (64, 32),
}
"""Queries and keys of a tile, by head width and soft cap, as kernels/attention.cu instantiates them."""


def splits_for(end: int) -> int:
    """Blocks a head for the decode attention over ``end`` positions: a power of two, so that graphs can be reused."""
    return 1 << (-(-end // _SPAN) - 1).bit_length()


def attention(
    device: Device,
    q: DeviceArray,
    keys: DeviceArray,
    values: DeviceArray,
    out: DeviceArray,
    state: DeviceArray,
    scale: float,
    window: int | None,
    softcap: float | None,
    flash: bool,
) -> None:
    """Causal attention of q [m, heads, width] into out [m, heads * width]; ``flash`` where its widths allow."""
    m, heads, width = q.shape
    kv_heads, v_width = values.shape[1:]
    expect("queries", q, "f16", (m, heads, width), 2)
    expect("cached keys", keys, "f16", (None, kv_heads, width))
    expect("cached values", values, "f16", (None, kv_heads, v_width))
    if max(width, v_width) > 256:
        raise KernelError(f"attention: heads of {max(width, v_width)} dimensions, expected up to 256; use backend numpy")
    tiles = _FA_TILES.get((str(width), softcap is not None)) if flash and width == v_width else None
    arguments = (
        q.pointer,
        keys.pointer,
        values.pointer,
        out.pointer,
        state.pointer,
        m,
        heads,
        kv_heads,
        width,
        v_width,
        heads * width,
        window or 0,
        scale,
        softcap or 0.0,
    )
    if tiles is None:
        device.kernel("attention", "attention_plain", "PPPPPiiiiiiiff", 128)(
            device.stream_handle, blocks(m * heads, 4), *arguments
        )
        return
    rows, columns = tiles
    name = f"attention_fa_{width}" + ("_cap" if softcap is not None else "")
    kernel = device.kernel("attention", name, "PPPPPiiiiiiiff", 128, (rows + 4 * columns) * width * 2)
    kernel(device.stream_handle, (-(-m // rows), heads, 1), *arguments)


def attention_few(
    device: Device,
    q: DeviceArray,
    keys: DeviceArray,
    values: DeviceArray,
    partial: DeviceArray,
    out: DeviceArray,
    state: DeviceArray,
    scale: float,
    window: int | None,
    softcap: float | None,
) -> None:
    """As ``attention``, for few queries: ``partial`` f32 [m, heads, splits, width + 2] says over how many blocks."""
    m, heads, width = q.shape
    splits, v_width = partial.shape[2], values.shape[2]
    expect("queries", q, "f16", (m, heads, width), 2)
    expect("partial attention", partial, "f32", (m, heads, splits, v_width + 2))
    decode = device.kernel("attention", "attention_decode", "PPPPPiiiiiiffi", 128)
    decode(
        device.stream_handle,
        (heads, splits, m),
        q.pointer,
        keys.pointer,
        values.pointer,
        partial.pointer,
        state.pointer,
        heads,
        keys.shape[1],
        width,
        v_width,
        heads * width,
        window or 0,
        scale,
        softcap or 0.0,
        _SPAN,
    )
    combine = device.kernel("attention", "attention_combine", "PPiii", 128)
    combine(device.stream_handle, (heads, m, 1), partial.pointer, out.pointer, heads, v_width, splits)
