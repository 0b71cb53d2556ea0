"""Random quantised blocks whose weights have mean 0 and a chosen deviation.

The quants are random bits. The scales of a block are drawn from a table that is drawn anew for every tensor: uniform
around what gives the wanted deviation, as float16 well above its subnormal numbers, and with minima that make the mean 0.
Layouts of the blocks: ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from numpy.typing import NDArray

Type = GGMLQuantizationType
Bytes = NDArray[np.uint8]
Random = np.random.Generator

_TABLE = 4096
_CHUNK_BYTES = 4 << 20
_SPREAD = (0.75, 1.25)
"""Range of a block's scale about its mean: a kernel that reads the wrong block's scale gives another result."""


def _deviation(levels: int) -> float:
    """Of a whole number drawn uniformly from ``levels``."""
    return sqrt((levels**2 - 1) / 12)


def _halves(random: Random, scale: float) -> NDArray[np.float16]:
    drawn: NDArray[np.float64] = random.uniform(*_SPREAD, (_TABLE, 1))
    return (scale * drawn).astype(np.float16)


def _signed(random: Random, levels: int, deviation: float) -> Bytes:
    """d, of either sign, since the levels of these types are not centred on 0."""
    d: NDArray[np.float16] = _halves(random, deviation / _deviation(levels))
    return np.where(random.random(d.shape) < 0.5, d, -d).view(np.uint8)


def _centred(random: Random, levels: int, deviation: float) -> Bytes:
    """d and m of q5_1: weight = d q + m."""
    d = _halves(random, deviation / _deviation(levels))
    m = (d.astype(np.float32) * -(levels - 1) / 2).astype(np.float16)
    return np.concatenate([d.view(np.uint8), m.view(np.uint8)], 1)


def _six_bit_scales(random: Random, levels: int, deviation: float) -> Bytes:
    """d, dmin and the eight 6-bit scales and minima of q4_K and q5_K: weight = d scale q - dmin minimum."""
    scales = random.integers(8, 24, (_TABLE, 8), np.uint8)
    minima = scales + random.integers(-1, 2, scales.shape, np.int8).view(np.uint8)
    d = _halves(random, deviation / _deviation(levels) / float(np.sqrt(np.mean(scales.astype(np.float64) ** 2))))
    dmin = (d.astype(np.float32) * (levels - 1) / 2).astype(np.float16)
    # The first four scales and minima are whole; of the other four, bits 4 and 5 stand above those and the rest at the end.
    low_scales, low_minima = scales[:, :4] | (scales[:, 4:] >> 4 << 6), minima[:, :4] | (minima[:, 4:] >> 4 << 6)
    rest = (scales[:, 4:] & 15) | (minima[:, 4:] & 15) << 4
    return np.concatenate([d.view(np.uint8), dmin.view(np.uint8), low_scales, low_minima, rest], 1)


def _eight_bit_scales(random: Random, levels: int, deviation: float) -> Bytes:
    """The sixteen scales and d of q6_K: weight = d scale (q - 32). Scales of either sign keep the mean at 0."""
    scales = random.integers(2, 8, (_TABLE, 16), np.int8) * random.choice(np.array([-1, 1], np.int8), (_TABLE, 16))
    d = _halves(random, deviation / _deviation(levels) / float(np.sqrt(np.mean(scales.astype(np.float64) ** 2))))
    return np.concatenate([scales.view(np.uint8), d.view(np.uint8)], 1)


@dataclass(frozen=True, slots=True)
class _Form:
    """Where a block has its scales, and how to draw them: (random, levels of a quant, wanted deviation) -> table."""

    levels: int
    scales: Callable[[Random, int, float], Bytes]
    at_end: bool = False


_FORMS = {
    Type.Q4_0: _Form(16, _signed),
    Type.Q5_0: _Form(32, _signed),
    Type.Q5_1: _Form(32, _centred),
    Type.Q8_0: _Form(256, _signed),
    Type.Q4_K: _Form(16, _six_bit_scales),
    Type.Q5_K: _Form(32, _six_bit_scales),
    Type.Q6_K: _Form(64, _eight_bit_scales, at_end=True),
}


def random_tensor(kind: GGMLQuantizationType, weights: int, deviation: float, random: Random) -> Iterator[Bytes]:
    """The stored bytes of ``weights`` random weights, in pieces of a few MiB."""
    block, size = GGML_QUANT_SIZES[kind]
    form = _FORMS.get(kind)
    table = None if form is None else form.scales(random, form.levels, deviation)
    rows = _CHUNK_BYTES // size
    for start in range(0, weights // block, rows):
        count = min(rows, weights // block - start)
        if form is None or table is None:
            yield _floats(kind, count, deviation, random)
            continue
        width = table.shape[1]
        out = np.empty((count, size), np.uint8)
        quants, scales = (out[:, :-width], out[:, -width:]) if form.at_end else (out[:, width:], out[:, :width])
        quants[:] = _bits(random, count * (size - width)).reshape(count, size - width)
        chosen = random.integers(0, _TABLE, count, np.uint16)
        scales[:] = table[chosen]
        yield out.reshape(-1)


def constant_like(name: str, count: int, random: Random) -> Bytes:
    """Float32 norm weights about 1, biases about 0, router weights about 0: [count] as bytes."""
    centre, reach = (1.0, 0.1) if "norm" in name else (0.0, 0.1)
    return random.uniform(centre - reach, centre + reach, count).astype(np.float32).view(np.uint8)


def _bits(random: Random, count: int) -> Bytes:
    words: NDArray[np.uint64] = random.integers(0, np.iinfo(np.uint64).max, -(-count // 8), np.uint64, endpoint=True)
    return words.view(np.uint8)[:count]


def _floats(kind: GGMLQuantizationType, count: int, deviation: float, random: Random) -> Bytes:
    """Uniform float16 weights of the wanted deviation."""
    assert kind is Type.F16, kind
    whole = _bits(random, 2 * count).view(np.int16).astype(np.float32)
    return (whole * (deviation * sqrt(3) / 32768)).astype(np.float16).view(np.uint8)
