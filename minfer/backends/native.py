"""The NumPy backend with compiled kernels in place of its slow passes; what they do not take, NumPy does.

A few rows are multiplied straight from the weights' blocks with float32 activations, and nothing is kept. Many rows are
multiplied on integers where the CPU is fast at them (gate ``integers``; kernels/cpu/integer_product.c states the rounding),
else through float32 weights and BLAS.
"""

from __future__ import annotations

import ctypes

import numpy as np

from ..gates import resolve
from ..gguf import Tensor
from ..quantisation import Bytes, Float32, Quantisation, dequantise
from ..rotary import Rotary
from . import Gates, KvCache, Matrix
from .cpu_kernels import INTEGER_TYPES, MOST_ROWS, CpuKernels, address_of, can_decode
from .dense import DenseWeights
from .numpy import NumpyBackend, NumpyKvCache


class NativeBackend(NumpyBackend):
    """See ``Backend``."""

    def __init__(self, gates: Gates, library: ctypes.CDLL) -> None:
        super().__init__(gates)
        self.gates = resolve("numpy", gates)
        self._kernels = CpuKernels(library, int(self.gates["threads"]))
        self._integers = bool(self.gates["integers"]) and self._kernels.integers_fast
        self.gates["integers"] = self._integers
        self._weights = DenseWeights(int(self.gates["weight_cache_bytes"]), self._dequantise)
        self._packed: tuple[Float32, Float32] | None = None
        """The activations that were packed last, and what they became: q, k and v are products of the same ones."""

    def matrix(self, tensor: Tensor) -> Matrix:
        """Its data: where the blocks begin, or None where the kernels cannot read them."""
        return Matrix(tensor, address_of(tensor.raw) if can_decode(tensor.type, tensor.shape[-1]) else None)

    def _times(self, x: Float32, weight: Matrix, expert: int | None = None) -> Float32:
        kind = weight.tensor.type
        few = x.shape[0] <= MOST_ROWS
        if weight.data is None or not (few or (self._integers and kind.name in INTEGER_TYPES)):
            return super()._times(x, weight, expert)
        blocks = weight.data + (expert or 0) * kind.bytes_of((weight.n, weight.k))
        y = self._pool.take(x.shape[0], weight.n)
        if few:
            self._kernels.mmv(kind, blocks, np.ascontiguousarray(x), y)
            return y
        panels = self._pool.take(self._kernels.panel_floats(weight.k))
        self._kernels.integer_product(kind, blocks, weight.k, self._pack(x), panels, y)
        return y

    def _pack(self, x: Float32) -> Float32:
        if self._packed is None or self._packed[0] is not x:
            self._packed = None
            packed = self._pool.take(self._kernels.packed_floats(*x.shape))
            self._kernels.pack(np.ascontiguousarray(x), packed)
            self._packed = x, packed
        return self._packed[1]

    def rms_norm(self, x: Float32, weight: Float32, epsilon: float) -> Float32:
        self._packed = None
        y = self._pool.take(*x.shape)
        self._kernels.rms_norm(np.ascontiguousarray(x), weight, y, epsilon)
        return y

    def rope(self, x: Float32, rotary: Rotary, position: int) -> Float32:
        self._packed = None
        cosine, sine = self._turns.at(rotary, position, position + x.shape[0])
        self._kernels.rope(x, cosine, sine, interleaved=rotary.interleaved)
        return x

    def attention(
        self, q: Float32, cache: KvCache, layer: int, position: int, scale: float, window: int | None, softcap: float | None
    ) -> Float32:
        assert isinstance(cache, NumpyKvCache)
        (m, heads, d), dv = q.shape, cache.values.shape[-1]
        out = self._pool.take(m, heads, dv)
        scratch = self._pool.take(self._kernels.attention_floats(m, d, dv, position))
        keys, values = cache.keys[layer], cache.values[layer]
        self._kernels.attention(q, keys, values, out, scratch, position, scale, window, softcap)
        return out.reshape(m, -1)

    def add(self, x: Float32, y: Float32) -> Float32:
        self._packed = None
        self._kernels.add(x, y)
        return x

    def gated(self, gate: Float32, up: Float32, activation: str) -> Float32:
        self._packed = None
        self._kernels.gated_activation(gate, up, activation)
        return gate

    def _dequantise(self, raw: Bytes, kind: Quantisation, out: Float32) -> Float32:
        """As ``quantisation.dequantise``, on all cores for the types that the kernels read."""
        if not can_decode(kind, out.shape[-1]):
            return dequantise(raw, kind, out)
        self._kernels.dequantise(kind, address_of(raw), out)
        return out
