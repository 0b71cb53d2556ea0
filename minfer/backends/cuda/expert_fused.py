"""Products of a mixture's experts on Hopper's warpgroup matrix units: q4_K and q6_K, unpacked on the way."""

from __future__ import annotations

from math import ceil, sqrt

from . import launch
from .arrays import DeviceArray
from .device import Device
from .fused import BLOCK, STEP_NS, TARGET, shared_bytes
from .tensor_map import NBYTES, byte_boxes, f16_boxes

_ROWS = 128
_MOST_SLOTS = 1024
"""Places for tiles that a block of threads can list beside its stages."""
_TILE_NS = 3000
"""What a tile takes beside its columns (H200)."""
_LEAST_CHOICES = 24
"""Choices an expert, on average, below which another way is faster (H200, a product: 66 us against 69 at 16, 79 against 71
at 32, where the order of rows takes 4 and 6)."""


def can(device: Device, kind: str, n: int, k: int) -> bool:
    """Whether experts' matrices [n, k] stored as ``kind`` can go this way."""
    return device.target == TARGET and kind in BLOCK and k % 256 == 0 and n % 2 == 0


def tile_for(choices: int, experts: int, n: int, k: int, multiprocessors: int) -> int | None:
    """Choices of a tile that take the least time, were they shared as by lot; None where another way is faster."""
    mean = choices / experts
    if mean < _LEAST_CHOICES:
        return None
    most = mean + 2 * sqrt(mean)

    def ns(tokens: int) -> float:
        tiles = experts * ceil(most / tokens) * ceil(n / _ROWS)
        return ceil(tiles / multiprocessors) * (_TILE_NS + k / 64 * STEP_NS[tokens])

    fitting = [tokens for tokens in STEP_NS if choices // tokens + experts <= _MOST_SLOTS]
    return min(fitting, key=ns, default=None)


def product(
    device: Device,
    kind: str,
    weights: int,
    experts: int,
    x: DeviceArray,
    tiles: DeviceArray,
    tokens: int,
    out: DeviceArray,
) -> None:
    """x f16 [choices, k], in ``router_group``'s order, each row times its expert's matrix [n, k]: out f16 [choices, n]."""
    (choices, n), k = out.shape, x.shape[1]
    slots = tiles.shape[0]
    launch.expect("the experts' input", x, "f16", (choices, None), 256)
    launch.expect("the experts' result", out, "f16", (choices, n), 2)
    launch.expect("the tiles of choices", tiles, "i32", (choices // tokens + experts, 4))
    row_bytes = k // 256 * BLOCK[kind]
    layout = f"{NBYTES}s{NBYTES}sPiPiif"
    name, shared = f"gemm_{kind}_experts_fused_{tokens}", shared_bytes(kind, tokens) + 8 * slots
    kernel = device.kernel("expert_fused", name, layout, 384, shared)
    kernel(
        device.stream_handle,
        (min(device.multiprocessors, slots * -(-n // _ROWS)), 1, 1),
        f16_boxes(x.pointer, choices, k, tokens),
        byte_boxes(weights, experts * n, row_bytes, _ROWS, BLOCK[kind]),
        tiles.pointer,
        slots,
        out.pointer,
        n,
        k,
        x.scale,
    )
