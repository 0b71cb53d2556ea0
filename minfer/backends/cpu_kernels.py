"""The CPU's kernels as functions of NumPy arrays: a typed launcher each, which holds shapes against each other.

Arrays are float32 and contiguous; results are written into arrays that the caller gives. A weight is where its blocks lie
(``address_of``), its type, and its shape [n, k].
"""

from __future__ import annotations

import ctypes
import os
from ctypes import c_float, c_int, c_long, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from ..quantisation import Quantisation

Float32 = NDArray[np.float32]

INTEGER_TYPES = frozenset({"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K"})
"""Those of EACH_INTEGER_TYPE in kernels/cpu/types.h."""
FLOAT_TYPES = frozenset({"f32", "f16", "bf16"})
DECODED = INTEGER_TYPES | FLOAT_TYPES

MOST_THREADS = 255
"""That of kernels/cpu/threads.c: the room for more would be taken for nothing."""

MOST_ROWS = 8
"""Rows of activations that the matrix-vector kernel takes; more are better served by a matrix product."""

_ARGUMENTS = {
    "mmv": (c_int, c_void_p, c_void_p, c_void_p, c_int, c_int, c_int, c_int),
    "dequantise": (c_int, c_void_p, c_void_p, c_long, c_int),
    "pack": (c_void_p, c_void_p, c_int, c_int, c_int),
    "integer_product": (c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_int, c_int, c_int),
    "packed_bytes": (c_int, c_int),
    "panel_bytes": (c_int, c_int),
    "integers_fast": (),
    "rms_norm": (c_void_p, c_void_p, c_void_p, c_long, c_int, c_float, c_int),
    "rope": (c_void_p, c_void_p, c_void_p, c_int, c_int, c_int, c_int, c_int, c_int),
    "gated_activation": (c_void_p, c_void_p, c_long, c_int, c_int),
    "attention_floats": (c_int, c_int, c_int, c_int, c_int),
    "attention": (*(c_void_p,) * 5, c_long, c_long, *(c_int,) * 7, c_float, c_float, c_int),
    "add": (c_void_p, c_void_p, c_long, c_int),
}
_SIZES = ("packed_bytes", "panel_bytes", "attention_floats")


def address_of(array: NDArray[Any]) -> int:
    """Where an array's data lie."""
    return int(array.ctypes.data)


def can_decode(kind: Quantisation, k: int) -> bool:
    """Whether the kernels read rows of ``k`` weights of this type: whole blocks, 32 at a time."""
    return kind.name in DECODED and k > 0 and k % max(32, kind.block) == 0


class CpuKernels:
    """The compiled library, and how many threads take part."""

    def __init__(self, library: ctypes.CDLL, threads: int = 0) -> None:
        """``threads`` 0: as many as NumPy's BLAS uses, so that one setting limits both."""
        self.threads = min(threads or blas_threads(), MOST_THREADS)
        if self.threads < 1:
            raise ValueError(f"the kernels got {threads} threads, expected 1 or more, or 0")
        self._call: dict[str, Any] = {}
        for name, arguments in _ARGUMENTS.items():
            function = getattr(library, f"minfer_{name}")
            function.argtypes = arguments
            function.restype = c_long if name in _SIZES else c_int if name == "integers_fast" else None
            self._call[name] = function
        self.integers_fast = bool(self._call["integers_fast"]())
        """Whether this CPU multiplies 16-bit integers faster than float32."""

    def mmv(self, kind: Quantisation, weight: int, x: Float32, y: Float32) -> None:
        """y [m, n] = x [m, k] times the transpose of the weight [n, k]; m up to MOST_ROWS."""
        (m, k), n = x.shape, y.shape[1]
        _expect(1 <= m <= MOST_ROWS and y.shape[0] == m and can_decode(kind, k), "mmv", x, y)
        self._call["mmv"](kind.id, weight, _in(x), _in(y), m, n, k, self.threads)

    def dequantise(self, kind: Quantisation, weight: int, out: Float32) -> None:
        """Fill out [..., k] from its blocks."""
        _expect(can_decode(kind, out.shape[-1]), "dequantise", out)
        self._call["dequantise"](kind.id, weight, _in(out), out.size, self.threads)

    def packed_floats(self, m: int, k: int) -> int:
        """Float32s of room that ``pack`` needs."""
        return int(self._call["packed_bytes"](m, k)) // 4 + 1

    def panel_floats(self, k: int) -> int:
        """Float32s of room that ``integer_product`` needs for its threads' decoded weights."""
        return int(self._call["panel_bytes"](k, self.threads)) // 4 + 1

    def pack(self, x: Float32, packed: Float32) -> None:
        """Round x [m, k] to 16 bits, in the order in which ``integer_product`` reads it."""
        m, k = x.shape
        _expect(m > 0 and k > 0 and k % 32 == 0 and packed.size >= self.packed_floats(m, k), "pack", x, packed)
        self._call["pack"](_in(x), _in(packed), m, k, self.threads)

    def integer_product(self, kind: Quantisation, weight: int, k: int, packed: Float32, panels: Float32, y: Float32) -> None:
        """y [m, n] = packed activations [m, k] times the transpose of the weight [n, k]."""
        m, n = y.shape
        known = m > 0 and n > 0 and kind.name in INTEGER_TYPES and can_decode(kind, k)
        fits = known and packed.size >= self.packed_floats(m, k) and panels.size >= self.panel_floats(k)
        _expect(fits, "integer_product", packed, panels, y)
        self._call["integer_product"](kind.id, weight, _in(packed), _in(y), _in(panels), m, n, k, self.threads)

    def rms_norm(self, x: Float32, weight: Float32, y: Float32, epsilon: float) -> None:
        """y [..., d] = x over its root mean square, times weight [d]."""
        _expect(x.shape == y.shape and weight.shape == x.shape[-1:] and x.shape[-1] > 0, "rms_norm", x, weight, y)
        d = x.shape[-1]
        self._call["rms_norm"](_in(x), _in(weight), _in(y), x.size // d, d, epsilon, self.threads)

    def rope(self, x: Float32, cosine: Float32, sine: Float32, *, interleaved: bool) -> None:
        """Turn x [m, heads, d] in place by the angles of cosine and sine [m, 1, pairs]."""
        (m, heads, d), pairs = x.shape, cosine.shape[-1]
        fits = cosine.shape == sine.shape == (m, 1, pairs) and 2 * pairs <= d and heads * d > 0
        _expect(fits, "rope", x, cosine, sine)
        self._call["rope"](_in(x), _in(cosine), _in(sine), m, heads, d, pairs, int(interleaved), self.threads)

    def attention_floats(self, m: int, d: int, dv: int, position: int) -> int:
        """Float32s of room that ``attention`` needs."""
        return int(self._call["attention_floats"](m, d, dv, position, self.threads))

    def attention(
        self,
        q: Float32,
        keys: Float32,
        values: Float32,
        out: Float32,
        scratch: Float32,
        position: int,
        scale: float,
        window: int | None,
        softcap: float | None,
    ) -> None:
        """out [m, heads, dv] of q [m, heads, d] over keys [kv_heads, positions, d] and values [kv_heads, positions, dv].

        The heads of a cache may lie apart. The first token is at ``position``."""
        (m, heads, d), (kv_heads, positions, dv) = q.shape, values.shape
        fits = keys.shape == (kv_heads, positions, d) and out.shape == (m, heads, dv)
        fits = fits and kv_heads > 0 and heads % kv_heads == 0
        rows = all(array.strides[1:] == (4 * array.shape[2], 4) for array in (keys, values))
        room = scratch.size >= self.attention_floats(m, d, dv, position) and positions >= position + m
        _expect(fits and rows and room, "attention", q, keys, values, out, scratch)
        self._call["attention"](
            _in(q), address_of(keys), address_of(values), _in(out), _in(scratch),
            keys.strides[0] // 4, values.strides[0] // 4, m, heads, kv_heads, d, dv, position,
            window or 0, scale, softcap or 0.0, self.threads,
        )  # fmt: skip

    def gated_activation(self, gate: Float32, up: Float32, activation: str) -> None:
        """gate = activation(gate) * up, "silu" or "gelu"."""
        _expect(gate.shape == up.shape and activation in ("silu", "gelu"), "gated_activation", gate, up)
        self._call["gated_activation"](_in(gate), _in(up), gate.size, int(activation == "gelu"), self.threads)

    def add(self, x: Float32, y: Float32) -> None:
        """x += y."""
        _expect(x.shape == y.shape, "add", x, y)
        self._call["add"](_in(x), _in(y), x.size, self.threads)


def _in(array: Float32) -> int:
    if array.dtype != np.float32 or not array.flags.c_contiguous:
        raise ValueError(f"a kernel got {array.dtype} with strides {array.strides}, expected contiguous float32")
    return address_of(array)


def _expect(holds: bool, kernel: str, *arrays: Float32) -> None:
    if not holds:
        raise ValueError(f"kernel {kernel}: shapes {', '.join(str(list(array.shape)) for array in arrays)} do not fit")


def blas_threads() -> int:
    """Threads of NumPy's BLAS now: OPENBLAS_NUM_THREADS, a limit of threadpoolctl's, else the cores of this process."""
    pools = (int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas")
    return max(pools, default=os.cpu_count() or 1)
