"""Float32 forms of quantised weights, within a stated budget of memory.

A weight that fits the budget is converted once and kept; the others are converted block by block, whenever they are
used, into one buffer. Weights are kept in the order in which they are first used: a least-recently-used rule would drop
each weight just before it is needed again, since every pass uses all of them in the same order.

Tried and not kept: cutting kept weights from slabs of 64 MiB for the sake of huge pages (a token 7 % faster, the first
pass 0.7 s slower); int8 blocks with their scales, converted in cache for each token (as many ns a weight as float32).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..quantisation import Quantisation, dequantise
from . import Matrix

Float32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]

_BLOCK_BYTES = 16 << 20
"""Float32 bytes converted at a time for a weight that is not kept."""

_TRANSPOSED_ROWS = 256
"""Rows transposed at a time: few enough to stay in a core's cache, many enough for whole cache lines of columns."""


class DenseWeights:
    """Converts weights and keeps those that fit ``budget`` bytes."""

    def __init__(self, budget: int, convert: Callable[[Bytes, Quantisation, Float32], Float32] = dequantise) -> None:
        """``convert`` fills a contiguous float32 array from stored rows."""
        self._budget = budget
        self._convert = convert
        self._kept: dict[tuple[str, int], Float32] = {}
        self._buffer: Float32 = np.empty(0, np.float32)
        self.kept_bytes = 0

    @property
    def buffer_bytes(self) -> int:
        return int(self._buffer.nbytes)

    def rows(self, weight: Matrix, expert: int | None = None) -> Iterator[tuple[int, Float32]]:
        """The weight [n, k], or one expert's, as (index of the first row, rows); rows may be reused."""
        key = (weight.tensor.name, -1 if expert is None else expert)
        kept = self._kept.get(key)
        if kept is not None:
            yield 0, kept
            return
        raw = weight.tensor.raw if expert is None else weight.tensor.raw[expert]
        nbytes = weight.n * weight.k * 4
        if self.kept_bytes + nbytes <= self._budget:
            dense = self._kept[key] = self._whole(raw, weight.tensor.type, weight.n, weight.k)
            self.kept_bytes += nbytes
            yield 0, dense
            return
        yield from self._blocks(raw, weight.tensor.type, weight.n, weight.k, max(1, _BLOCK_BYTES // (4 * weight.k)))

    def _whole(self, raw: Bytes, kind: Quantisation, n: int, k: int) -> Float32:
        """The weight [n, k], columns contiguous where they are the longer axis: one token's product then runs over long
        columns, which OpenBLAS does at 25 GB/s where short rows give 15 (one EPYC core, k = 640)."""
        if n < k:
            return self._convert(raw, kind, np.empty((n, k), np.float32))
        dense = np.empty((k, n), np.float32).T
        for start, rows in self._blocks(raw, kind, n, k, _TRANSPOSED_ROWS):
            dense[start : start + len(rows)] = rows
        return dense

    def _blocks(self, raw: Bytes, kind: Quantisation, n: int, k: int, step: int) -> Iterator[tuple[int, Float32]]:
        step = min(n, step)
        if self._buffer.size < step * k:
            self._buffer = np.empty(step * k, np.float32)
        for start in range(0, n, step):
            rows = min(step, n - start)
            block = self._buffer[: rows * k].reshape(rows, k)
            self._convert(raw[start : start + rows], kind, block)
            yield start, block
