"""Products whose q4_K or q6_K weights become f16 operands in the kernel itself: no scratch, no pass over them before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from . import launch
from .arrays import SIZES, DeviceArray
from .device import Device
from .tensor_map import NBYTES, byte_boxes, f16_boxes

TARGET = "sm_90a"
"""The only chips that have these matrix instructions."""
_ROWS, _DEPTH, _STAGES, _BUFFERS = 128, 64, 5, 2
BLOCK = {"q4_K": 144, "q6_K": 224}
"""As in kernels/fused.cu, and the bytes of 256 weights."""
_MOST_TOKENS, _LEAST_ROWS = 2048, 1024
STEP_NS = {64: 320, 128: 440, 256: 700}
"""Token tiles that the source instantiates, and what 64 columns of one take with all multiprocessors at work (H200)."""
_TILE_NS, _EXCHANGE_NS, _LAUNCH_NS = 3000, 3000, 1500
"""What a tile takes beside its columns, the exchange of two halves, and one more launch in a graph (H200)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of the matrix that one launch multiplies."""

    first: int
    rows: int
    tokens: int
    """Of a tile."""
    split: bool = False
    """Two blocks a tile, half of the columns each."""

    def tiles(self, m: int) -> int:
        return -(-self.rows // _ROWS) * -(-m // self.tokens)

    def ns(self, m: int, k: int, multiprocessors: int) -> int:
        """About how long the launch takes, for comparing one plan with another."""
        tile = _TILE_NS + k // _DEPTH * STEP_NS[self.tokens]
        if self.split:
            tile = _TILE_NS + _EXCHANGE_NS + -(-k // 512) * 256 // _DEPTH * STEP_NS[self.tokens]
        blocks = self.tiles(m) * (2 if self.split else 1)
        return _LAUNCH_NS + -(-blocks // multiprocessors) * tile


def can(device: Device, kind: str, n: int, k: int) -> bool:
    """Whether a matrix [n, k] stored as ``kind`` can go this way."""
    return device.target == TARGET and kind in BLOCK and k % 256 == 0 and n % 2 == 0


def pays(m: int, n: int) -> bool:
    """Whether it is faster than making the weights f16 first (H200).

    For many tokens one pass over the weights costs less than unpacking them for each tile (649 us against 625 at 3325 tokens
    by [18944, 3584]; q6_K is even from 1024 on); few rows are too few tiles (12.8 us against 9.9 at 512 tokens by
    [512, 3584]).
    """
    return m < _MOST_TOKENS and n >= _LEAST_ROWS


def shared_bytes(kind: str, tokens: int) -> int:
    """Of a tile of so many tokens; its stages must begin at a multiple of 1024."""
    return _STAGES * tokens * 2 * _DEPTH + _BUFFERS * _ROWS * BLOCK[kind] + 1024


@lru_cache(maxsize=256)
def plan(m: int, n: int, k: int, multiprocessors: int) -> tuple[Part, ...]:
    """The launches that take the least time: one of all rows, or one of full waves and one of the rest."""
    return min(_plans(m, n, k, multiprocessors), key=lambda parts: sum(part.ns(m, k, multiprocessors) for part in parts))


def _plans(m: int, n: int, k: int, multiprocessors: int) -> Iterator[tuple[Part, ...]]:
    splits = (False, True) if k >= 512 else (False,)
    for tokens in STEP_NS:
        yield from ((Part(0, n, tokens, split),) for split in splits)
        token_tiles = -(-m // tokens)
        full_waves = Part(0, n, tokens).tiles(m) // multiprocessors
        rows = full_waves * multiprocessors // token_tiles * _ROWS
        if 0 < rows < n:
            yield from ((Part(0, rows, tokens), Part(rows, n - rows, rest, split)) for rest in STEP_NS for split in splits)


def fused(device: Device, kind: str, weights: int, x: DeviceArray, out: DeviceArray) -> None:
    """out f16 [m, n] = x f16 [m, k] times the transpose of the matrix [n, k] of ``kind`` at ``weights``."""
    m, n = out.shape
    launch.expect("a matrix product's input", x, "f16", (m, None), 256)
    launch.expect("a matrix product's result", out, "f16", (m, n), 2)
    k = x.shape[1]
    block = BLOCK[kind]
    row_bytes = k // 256 * block
    for part in plan(m, n, k, device.multiprocessors):
        name = f"gemm_{kind}_fused_{part.tokens}" + ("_split" if part.split else "")
        kernel = device.kernel("fused", name, f"{NBYTES}s{NBYTES}sPiiiif", 384, shared_bytes(kind, part.tokens))
        blocks = 2 * part.tiles(m) if part.split else min(part.tiles(m), device.multiprocessors)
        of_x = f16_boxes(x.pointer, m, k, part.tokens)
        of_weights = byte_boxes(weights + part.first * row_bytes, part.rows, row_bytes, _ROWS, block)
        to = out.pointer + part.first * SIZES["f16"]
        kernel(device.stream_handle, (blocks, 1, 1), of_x, of_weights, to, m, part.rows, n, k, x.scale)
