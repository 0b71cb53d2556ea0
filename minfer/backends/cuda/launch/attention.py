"""Attention: flash or plain for many queries, split over blocks for a few."""

from __future__ import annotations

from ..arrays import DeviceArray
from ..device import Device
from .checks import LARGE_SHARED, expect

_SPAN = 64
"""Cache positions that one block of the decode attention takes."""
_SLICE = 256
"""Columns of a head's result that one block sums."""
_FA_TILES = {
    ("64", False): (128, 64),
    ("64", True): (128, 64),
    ("128", False): (128, 64),
    ("128", True): (64, 64),
    ("256", False): (64, 32),
    ("256", True): (64, 32),
    ("512", False): (64, 32),
    ("512", True): (64, 32),
}
"""Queries and keys of a tile, by head width and soft cap, as kernels/attention.cu instantiates them."""


def splits_for(end: int) -> int:
    """Blocks a head for the decode attention over ``end`` positions: a power of two, so that graphs can be reused."""
    return 1 << (-(-end // _SPAN) - 1).bit_length()


def _slices(v_width: int) -> int:
    return -(-v_width // _SLICE)


def attention_shapes(
    q: DeviceArray, keys: DeviceArray, values: DeviceArray, multiple: int = 2, alike: bool = False
) -> tuple[int, int, int, int, int]:
    """Queries, heads, key-value heads, width and value width, of arrays that go together.

    f16 q [m, heads, width], keys [capacity, kv_heads, width] and values [capacity, kv_heads, v_width], of widths that are
    multiples of ``multiple``; ``alike``: v_width must be width. Raises KernelError.
    """
    m, heads, width = q.shape
    kv_heads, v_width = values.shape[1:]
    expect("queries", q, "f16", (m, heads, width), multiple)
    expect("cached keys", keys, "f16", (None, kv_heads, width), multiple)
    expect("cached values", values, "f16", (keys.shape[0], kv_heads, width if alike else v_width), multiple)
    return m, heads, kv_heads, width, v_width


def _tiles(device: Device, width: int, v_width: int, softcap: float | None) -> tuple[int, int] | None:
    """Queries and keys of a tile, where the flash attention has tiles for such heads on this GPU."""
    if width != v_width or (width > _SLICE and device.target not in LARGE_SHARED):
        return None
    return _FA_TILES.get((str(width), softcap is not None))


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
    m, heads, kv_heads, width, v_width = attention_shapes(q, keys, values)
    tiles = _tiles(device, width, v_width, softcap) if flash else None
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
        wide = max(width, v_width) > _SLICE
        kernel = device.kernel("attention", "attention_plain" + "_wide" * wide, "PPPPPiiiiiiiff", 128)
        kernel(device.stream_handle, (-(-m * heads // 4), _slices(v_width), 1), *arguments)
        return
    rows, columns = tiles
    slices = _slices(width)
    name = f"attention_fa_{width}" + ("_cap" if softcap is not None else "")
    # The queries, and two tiles of keys and of one slice of values.
    shared = 2 * (rows * width + 2 * columns * (width + width // slices))
    kernel = device.kernel("attention", name, "PPPPPiiiiiiiff", 128, shared)
    kernel(device.stream_handle, (-(-m // rows), heads, slices), *arguments)


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
    m, heads, kv_heads, width, v_width = attention_shapes(q, keys, values)
    splits = partial.shape[2]
    expect("partial attention", partial, "f32", (m, heads, splits, v_width + 2))
    wide = max(width, v_width) > _SLICE
    decode = device.kernel("attention", "attention_decode" + "_wide" * wide, "PPPPPiiiiiiffi", 128)
    decode(
        device.stream_handle,
        (heads * _slices(v_width), splits, m),
        q.pointer,
        keys.pointer,
        values.pointer,
        partial.pointer,
        state.pointer,
        heads,
        kv_heads,
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
