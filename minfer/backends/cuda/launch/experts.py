"""A mixture of experts: the router's choices, their order, products with the chosen matrices, and the weighted sum."""

from __future__ import annotations

from ....kernels import KernelError
from ..arrays import DeviceArray
from ..device import Device
from .checks import blocks, expect
from .weights import GROUPED, vector_grid

_ROWS, _STEP = 128, 64
"""Weight rows of a tile, and columns that one step takes, as in kernels/expert_gemm.cu."""
_RAW_BYTES = {"q4_K": 2 * _ROWS * 160, "q6_K": 2 * _ROWS * 224}
"""Shared memory for two raw blocks of every row; other types are read where they lie."""
_STAGES = {("q6_K", 128): 2}
"""Stages of activations where they are not three: what every GPU gives a block of threads would not hold them."""
EXPERT_TILES = (64, 128)
"""Choices of a tile."""


def expert_tiles(kind: str) -> tuple[int, ...]:
    """Those of ``EXPERT_TILES`` for which there is a product with matrices stored as ``kind``."""
    return EXPERT_TILES if kind in _RAW_BYTES else EXPERT_TILES[:1]


def _share(choices: int, rows: int) -> int:
    """Choices that read one row, the same number for each. Raises KernelError."""
    if choices % rows:
        raise KernelError(f"experts: {choices} choices of {rows} rows, expected a multiple of them")
    return choices // rows


def router_top(device: Device, scores: DeviceArray, chosen: DeviceArray, weights: DeviceArray) -> None:
    """The highest of scores f32 [m, experts] as ``chosen`` i32 [m, used], and the softmax over them as ``weights`` f32."""
    m, experts = scores.shape
    used = chosen.shape[-1]
    expect("the router's scores", scores, "f32", (m, experts))
    expect("the chosen experts", chosen, "i32", (m, used))
    expect("the router's weights", weights, "f32", (m, used))
    if used > experts:
        raise KernelError(f"router: {used} experts a token of {experts}, expected at most as many as there are")
    kernel = device.kernel("experts", "router_top", "PPPiii", 128)
    kernel(device.stream_handle, blocks(m, 4), scores.pointer, chosen.pointer, weights.pointer, m, experts, used)


def router_group(
    device: Device,
    chosen: DeviceArray,
    order: DeviceArray,
    place: DeviceArray,
    tiles: DeviceArray,
    experts: int,
    tokens: int,
) -> None:
    """``chosen`` [choices] in the ``order`` [choices] of their experts, cut into ``tiles`` [.., 4] of at most ``tokens``.

    ``place`` [choices] says where each one went.
    """
    choices = chosen.size
    expect("the chosen experts", chosen, "i32", (None,) * len(chosen.shape))
    expect("the order of choices", order, "i32", (choices,))
    expect("the places of choices", place, "i32", (choices,))
    expect("the tiles of choices", tiles, "i32", (choices // tokens + experts, 4))
    kernel = device.kernel("experts", "router_group", "PPPPii", 1024)
    pointers = chosen.pointer, order.pointer, place.pointer, tiles.pointer
    kernel(device.stream_handle, (experts, 1, 1), *pointers, choices, tokens)


def router_rows(device: Device, x: DeviceArray, order: DeviceArray, out: DeviceArray) -> None:
    """The row of x [m, k] that each choice of ``order`` [choices] reads: f16 [choices, k]."""
    (m, k), choices = x.shape, order.shape[0]
    expect("the experts' input", x, "f16", (m, k), 8)
    expect("the order of choices", order, "i32", (choices,))
    share = _share(choices, m)
    expect("rows in the order of their experts", out, "f16", (choices, k))
    kernel = device.kernel("experts", "router_rows", "PPPiii", 256)
    pointers = x.pointer, order.pointer, out.pointer
    kernel(device.stream_handle, blocks(choices * k // 8, 256), *pointers, choices, share, k)


def expert_gemm(
    device: Device,
    kind: str,
    weights: int,
    x: DeviceArray,
    order: DeviceArray,
    tiles: DeviceArray,
    tokens: int,
    share: int,
    out: DeviceArray,
) -> None:
    """Each choice's row of x [rows, k] times its expert's matrix [n, k] stored as ``kind``: out [choices, n].

    ``order`` and ``tiles`` are ``router_group``'s for ``tokens`` a tile. Results are in that order; so is x where
    ``share`` is 0, else so many choices of a token read one row.
    """
    (choices, n), (rows, k) = out.shape, x.shape
    expect("the experts' input", x, "f16", (rows, None), 256 if kind in _RAW_BYTES else 8)
    expect("the experts' result", out, "f16", (choices, n), 2)
    expect("the order of choices", order, "i32", (choices,))
    expect("the tiles of choices", tiles, "i32", (None, 4))
    if tokens not in expert_tiles(kind) or choices != rows * max(share, 1):
        raise KernelError(f"experts: no kernel for {choices} choices of {rows} rows, {tokens} a tile, stored as {kind}")
    shared = _RAW_BYTES.get(kind, 0) + _STAGES.get((kind, tokens), 3) * tokens * _STEP * 2
    kernel = device.kernel("expert_gemm", f"gemm_{kind}_experts_{tokens}", "PPPPPiiif", 128, shared)
    pointers = weights, x.pointer, order.pointer, tiles.pointer, out.pointer
    grid = (-(-n // _ROWS), tiles.shape[0], 1)
    kernel(device.stream_handle, grid, *pointers, n, k, share, x.scale)


def expert_mmv(device: Device, kind: str, weights: int, x: DeviceArray, chosen: DeviceArray, out: DeviceArray) -> None:
    """As ``expert_gemm`` for few choices, one after another; ``chosen`` as the router left it."""
    (choices, n), (rows, k) = out.shape, x.shape
    expect("the experts' input", x, "f16", (rows, None), 256 if kind in GROUPED else 8)
    expect("the experts' result", out, "f16", (chosen.size, n))
    expect("the chosen experts", chosen, "i32", (None,) * len(chosen.shape))
    share = _share(choices, rows)
    across, threads, shared = vector_grid(device, kind, n)
    kernel = device.kernel("mmv", f"mmv_{kind}_experts", "PPPPiiif", threads, shared)
    pointers = weights, x.pointer, chosen.pointer, out.pointer
    kernel(device.stream_handle, (across, choices, 1), *pointers, n, k, share, x.scale)


def combine(device: Device, y: DeviceArray, place: DeviceArray | None, weights: DeviceArray, out: DeviceArray) -> None:
    """Weighted sum of y [m, used, width] over used, into out [m, width]; ``place`` [m * used] says where y's rows are,
    where they do not follow one another."""
    m, used, width = y.shape
    expect("the experts' results", y, "f16", (m, used, width), 8)
    expect("the router's weights", weights, "f32", (m, used))
    expect("the sum of the experts' results", out, "f16", (m, width))
    if place is not None:
        expect("the places of choices", place, "i32", (m * used,))
    kernel = device.kernel("experts", "moe_combine", "PPPPiii", 256)
    pointers = y.pointer, 0 if place is None else place.pointer, weights.pointer, out.pointer
    kernel(device.stream_handle, blocks(m * width // 8, 256), *pointers, m, used, width)
