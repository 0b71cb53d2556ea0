"""Blocks of quantised weights to float32, for the types that most files use; bit for bit what ggml's package gives.

Each function takes blocks [n, block bytes] and fills out [n, weights per block]. They are written for NumPy's strengths:
byte arithmetic on whole rows in place, one conversion to float32 straight into the result, then the scales. Against the
package's own dequantisers (one core of an EPYC, 1.3 M weights): q4_K 8.5 ms -> 1.7, q5_0 5.3 -> 2.5, q6_K 4.4 -> 2.2.
Layouts: https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Unpack = Callable[[Bytes, Float32], None]

_CHUNK = 1 << 18
"""Weights converted at a time: the intermediate bytes stay in a core's cache, and memory stays bounded."""


def _halves(raw: Bytes) -> Float32:
    """float16 fields [n, 2 * count] as float32 [n, count]."""
    return np.ascontiguousarray(raw).view(np.float16).astype(np.float32)


def _nibbles(packed: Bytes, q: Bytes) -> None:
    """Low nibbles of packed [..., w] into q[..., 0, w], high ones into q[..., 1, w]."""
    np.bitwise_and(packed, 15, out=q[..., 0, :])
    np.right_shift(packed, 4, out=q[..., 1, :])


def _q4_0(blocks: Bytes, out: Float32) -> None:
    q = np.empty((len(blocks), 2, 16), np.uint8)
    _nibbles(blocks[:, 2:], q)
    q -= np.uint8(8)
    out[...] = q.view(np.int8).reshape(-1, 32)
    out *= _halves(blocks[:, :2])


def _q4_1(blocks: Bytes, out: Float32) -> None:
    q = np.empty((len(blocks), 2, 16), np.uint8)
    _nibbles(blocks[:, 4:], q)
    out[...] = q.reshape(-1, 32)
    scales = _halves(blocks[:, :4])
    out *= scales[:, :1]
    out += scales[:, 1:]


def _fifth_bits(packed: Bytes, nibbles: Bytes) -> Bytes:
    """Five-bit values [n, 32] of high bits packed in 4 bytes and nibbles in 16."""
    bits = np.unpackbits(np.ascontiguousarray(packed), axis=-1, bitorder="little")
    bits <<= 4
    q = np.empty((len(packed), 2, 16), np.uint8)
    _nibbles(nibbles, q)
    bits |= q.reshape(-1, 32)
    return bits


def _q5_0(blocks: Bytes, out: Float32) -> None:
    q = _fifth_bits(blocks[:, 2:6], blocks[:, 6:])
    q -= np.uint8(16)
    out[...] = q.view(np.int8)
    out *= _halves(blocks[:, :2])


def _q5_1(blocks: Bytes, out: Float32) -> None:
    out[...] = _fifth_bits(blocks[:, 4:8], blocks[:, 8:])
    scales = _halves(blocks[:, :4])
    out *= scales[:, :1]
    out += scales[:, 1:]


def _q8_0(blocks: Bytes, out: Float32) -> None:
    out[...] = blocks[:, 2:].view(np.int8)
    out *= _halves(blocks[:, :2])


def _scale_and_min(blocks: Bytes) -> tuple[Float32, Float32]:
    """The eight scales and mins [n, 8, 1] of q4_K and q5_K: float16 times six bits, packed in 12 bytes."""
    packed = blocks[:, 4:16].reshape(-1, 3, 4)
    low, mid, high = packed[:, 0], packed[:, 1], packed[:, 2]
    scale = np.concatenate([low & 63, (high & 15) | ((low >> 2) & 48)], axis=-1)
    least = np.concatenate([mid & 63, (high >> 4) | ((mid >> 2) & 48)], axis=-1)
    both = _halves(blocks[:, :4])
    return (both[:, :1] * scale)[:, :, None], (both[:, 1:] * least)[:, :, None]


def _q4_k(blocks: Bytes, out: Float32) -> None:
    q = np.empty((len(blocks), 4, 2, 32), np.uint8)
    _nibbles(blocks[:, 16:].reshape(-1, 4, 32), q)
    scale, least = _scale_and_min(blocks)
    groups = out.reshape(-1, 8, 32)
    groups[...] = q.reshape(-1, 8, 32)
    groups *= scale
    groups -= least


def _q5_k(blocks: Bytes, out: Float32) -> None:
    q = np.empty((len(blocks), 4, 2, 32), np.uint8)
    _nibbles(blocks[:, 48:].reshape(-1, 4, 32), q)
    high = blocks[:, 16:48]
    groups = q.reshape(-1, 8, 32)
    for bit in range(8):
        groups[:, bit] |= ((high >> bit) & 1) << 4
    scale, least = _scale_and_min(blocks)
    result = out.reshape(-1, 8, 32)
    result[...] = groups
    result *= scale
    result -= least


def _q6_k(blocks: Bytes, out: Float32) -> None:
    q = np.empty((len(blocks), 2, 2, 64), np.uint8)
    _nibbles(blocks[:, :128].reshape(-1, 2, 64), q)
    high = blocks[:, 128:192].reshape(-1, 2, 32)
    groups = q.reshape(-1, 2, 4, 32)
    for pair in range(4):
        groups[:, :, pair] |= ((high >> (2 * pair)) & 3) << 4
    q -= np.uint8(32)
    result = out.reshape(-1, 16, 16)
    result[...] = q.view(np.int8).reshape(-1, 16, 16)
    result *= (_halves(blocks[:, 208:]) * blocks[:, 192:208].view(np.int8))[:, :, None]


def _f16(blocks: Bytes, out: Float32) -> None:
    # Widening by hand is four times as fast as NumPy's own conversion; infinities and NaNs alone need the latter.
    bits = blocks.view(np.uint16)
    wide = out.view(np.uint32)
    np.bitwise_and(bits, 0x7FFF, out=wide)
    if wide.max(initial=0) >= 0x7C00:
        out[...] = blocks.view(np.float16)
        return
    wide <<= 13
    out *= np.float32(2.0**112)
    wide |= (bits & np.uint16(0x8000)).astype(np.uint32) << 16


def _bf16(blocks: Bytes, out: Float32) -> None:
    wide = out.view(np.uint32)
    wide[...] = blocks.view(np.uint16)
    wide <<= 16


UNPACK: dict[str, Unpack] = {
    "q4_0": _q4_0, "q4_1": _q4_1, "q5_0": _q5_0, "q5_1": _q5_1, "q8_0": _q8_0,
    "q4_K": _q4_k, "q5_K": _q5_k, "q6_K": _q6_k, "f16": _f16, "bf16": _bf16,
}  # fmt: skip


def unpack(name: str, blocks: Bytes, out: Float32) -> None:
    """Fill out [n, weights per block] from blocks [n, block bytes] of the type ``name`` of UNPACK."""
    step = max(1, _CHUNK // out.shape[1])
    for start in range(0, len(blocks), step):
        UNPACK[name](blocks[start : start + step], out[start : start + step])
