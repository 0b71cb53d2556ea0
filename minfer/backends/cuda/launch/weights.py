"""Kernels that read weights as they are stored: embedding, dequantise, a few rows times a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....kernels import KernelError
from ..arrays import DeviceArray
from ..device import Device
from .checks import expect

DECODED = (
    "f32",
    "f16",
    "bf16",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "q2_K",
    "q3_K",
    "q4_K",
    "q5_K",
    "q6_K",
    "iq4_nl",
    "iq4_xs",
)
"""Types that kernels/blocks.cuh decodes."""
FEW_ROWS = 4
"""Up to so many tokens are multiplied by the matrix-vector kernel: it reads the weights once a token."""
_TILES = {"q4_K": 4 * (16 * 160 + 512), "q6_K": 3 * (16 * 240 + 512)}
"""Shared memory of a warp in kernels/mmv_tile.cuh: stages of 16 rows and of the activations that they meet."""
_TILE_ROWS = 16
GROUPED = frozenset(_TILES)
"""Types whose matrix-vector products can share a launch."""


def embedding(device: Device, kind: str, table: int, tokens: DeviceArray, out: DeviceArray, scale: float) -> None:
    """Rows of a table stored as ``kind``, times ``scale``, into f32 ``out`` [m, width]."""
    expect("embedding's result", out, "f32", (tokens.shape[0], None), 8)
    kernel = device.kernel("embedding", f"embedding_{kind}", "PPPif", 256)
    kernel(device.stream_handle, (out.shape[0], 1, 1), table, tokens.pointer, out.pointer, out.shape[1], scale)


def dequantise(device: Device, kind: str, weights: int, out: DeviceArray) -> None:
    """All weights stored as ``kind`` at ``weights``, to f16 ``out``."""
    if out.size % 8:
        raise KernelError(f"dequantise: {out.shape} is {out.size} weights, expected a multiple of 8")
    grid = (min(-(-out.size // 2048), 1 << 20), 1, 1)
    device.kernel("dequantise", f"dequantise_{kind}", "PPq", 256)(device.stream_handle, grid, weights, out.pointer, out.size)


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix stored as ``kind`` at an address, the f16 result [m, n] of a product with it, and a bias [n] to add."""

    kind: str
    weights: int
    out: DeviceArray
    bias: DeviceArray | None


def mmv_group(device: Device, x: DeviceArray, products: Sequence[Product]) -> None:
    """Up to three matrix-vector products of x [m, k], in one launch; types of ``GROUPED`` only."""
    m, k = x.shape
    expect("the matrix-vector products' input", x, "f16", (m, None), 256)
    arguments: list[int] = []
    for product in products:
        expect("a grouped product's result", product.out, "f16", (m, None))
        bias = 0 if product.bias is None else product.bias.pointer
        arguments += [product.weights, bias, product.out.pointer, product.out.shape[1], int(product.kind[1])]
    arguments += [0] * (15 - len(arguments))
    tiles = sum(-(-product.out.shape[1] // _TILE_ROWS) for product in products)
    mixed = any(product.kind != "q4_K" for product in products)
    name, warps = "mmv_group" if mixed else "mmv_q4_K_group", _warps(device, tiles)
    shared = warps * (max(_TILES.values()) if mixed else _TILES["q4_K"])
    kernel = device.kernel("mmv", name, "Pif" + 3 * "PPPii", 32 * warps, shared)
    kernel(device.stream_handle, (tiles, m, 1), x.pointer, k, x.scale, *arguments)


def _warps(device: Device, tiles: int) -> int:
    """Warps of a block: more where blocks are few, or memory's latency shows. Seven take what every GPU gives a block."""
    return 4 if tiles >= 4 * device.multiprocessors else 7


def vector_grid(device: Device, kind: str, n: int) -> tuple[int, int, int]:
    """Blocks, threads of each, and their shared memory, for a row times a matrix of ``n`` rows stored as ``kind``."""
    if kind not in _TILES:
        return -(-n // 4), 128, 0
    across = -(-n // _TILE_ROWS)
    warps = _warps(device, across)
    return across, 32 * warps, warps * _TILES[kind]


def mmv(device: Device, kind: str, weights: int, x: DeviceArray, out: DeviceArray, bias: DeviceArray | None = None) -> None:
    """x [m, k] times the transpose of a matrix [n, k] stored as ``kind``, plus ``bias`` [n], into ``out`` [m, n]."""
    m, n = out.shape
    expect("the matrix-vector product's input", x, "f16", (m, None), 8)
    if bias is not None:
        expect("a bias", bias, "f32", (n,))
    across, threads, shared = vector_grid(device, kind, n)
    kernel = device.kernel("mmv", f"mmv_{kind}", "PPPPiifi", threads, shared)
    kernel(
        device.stream_handle,
        (across, m, 1),
        weights,
        x.pointer,
        0 if bias is None else bias.pointer,
        out.pointer,
        n,
        x.shape[1],
        x.scale,
        int(out.dtype == "f32"),
    )
