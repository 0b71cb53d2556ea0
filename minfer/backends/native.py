"""The NumPy backend with compiled kernels in place of its slow passes; what they do not take, NumPy does.

A few rows are multiplied straight from the weights' blocks with float32 activations, and nothing is kept. Many rows go
through float32 weights and BLAS.
"""

from __future__ import annotations

import ctypes

import numpy as np

from ..gates import resolve
from ..gguf import Tensor
from ..quantisation import Float32
from . import Gates, Matrix
from .cpu_kernels import MOST_ROWS, CpuKernels, address_of, can_decode
from .numpy import NumpyBackend


class NativeBackend(NumpyBackend):
    """See ``Backend``."""

    def __init__(self, gates: Gates, library: ctypes.CDLL) -> None:
        super().__init__(gates)
        self.gates = resolve("numpy", gates)
        self._kernels = CpuKernels(library, int(self.gates["threads"]))

    def matrix(self, tensor: Tensor) -> Matrix:
        """Its data: where the blocks begin, or None where the kernels cannot read them."""
        return Matrix(tensor, address_of(tensor.raw) if can_decode(tensor.type, tensor.shape[-1]) else None)

    def _times(self, x: Float32, weight: Matrix, expert: int | None = None) -> Float32:
        if weight.data is None or x.shape[0] > MOST_ROWS:
            return super()._times(x, weight, expert)
        kind = weight.tensor.type
        blocks = weight.data + (expert or 0) * kind.bytes_of((weight.n, weight.k))
        y = self._pool.take(x.shape[0], weight.n)
        self._kernels.mmv(kind, blocks, np.ascontiguousarray(x), y)
        return y
