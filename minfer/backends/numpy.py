"""The NumPy backend: the reference against which every kernel is checked, and the default where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from ..gates import resolve
from ..gguf import Tensor
from ..quantisation import Float32, dequantise
from ..rotary import Rotary
from . import Gates, KvCache, Matrix
from .attend import Attend
from .dense import DenseWeights
from .pool import Pool
from .turns import Turns

_FIRST_CAPACITY = 512
_GELU = np.float32(sqrt(2.0 / pi))


class NumpyKvCache:
    """Keys [layers, kv_heads, positions, d] and values; memory grows with the positions used, up to ``capacity``."""

    def __init__(self, layers: int, capacity: int, kv_heads: int, key_length: int, value_length: int) -> None:
        self.capacity = capacity
        room = min(capacity, _FIRST_CAPACITY)
        self.keys: Float32 = np.empty((layers, kv_heads, room, key_length), np.float32)
        self.values: Float32 = np.empty((layers, kv_heads, room, value_length), np.float32)

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.values.nbytes)

    def reserve(self, positions: int) -> None:
        """Make room for ``positions``, doubling so that a long decode copies seldom."""
        room = self.keys.shape[2]
        if positions > room:
            room = min(self.capacity, max(positions, 2 * room))
            self.keys, self.values = _grown(self.keys, room), _grown(self.values, room)


def _grown(old: Float32, room: int) -> Float32:
    new = np.empty((*old.shape[:2], room, old.shape[3]), np.float32)
    new[:, :, : old.shape[2]] = old
    return new


@dataclass(frozen=True, slots=True, eq=False)
class Routing:
    """Experts of each token [m, used], and their weights [m, used]."""

    experts: NDArray[np.int64]
    weights: Float32


class NumpyBackend:
    """See ``Backend``. Weights are made float32 when they are used; arithmetic is float32 through NumPy's BLAS."""

    name = "numpy"

    def __init__(self, gates: Gates) -> None:
        self.gates = {**resolve("numpy", gates), "native": False, "integers": False}
        self._caches: list[NumpyKvCache] = []
        self._pool = Pool()
        self._attend = Attend(self._pool)
        self._turns = Turns()
        self._weights = DenseWeights(int(self.gates["weight_cache_bytes"]))

    def matrix(self, tensor: Tensor) -> Matrix:
        return Matrix(tensor, None)

    def vector(self, tensor: Tensor) -> Float32:
        return tensor.dequantise()

    def tokens(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        return ids

    def embedding(self, table: Matrix, tokens: NDArray[np.int32], scale: float) -> Float32:
        rows = dequantise(table.tensor.raw[tokens], table.tensor.type)
        rows *= np.float32(scale)
        return rows

    def linear(self, weight: Matrix, x: Float32, bias: Float32 | None = None) -> Float32:
        y = self._times(x, weight)
        if bias is not None:
            y += bias
        return y

    def _times(self, x: Float32, weight: Matrix, expert: int | None = None) -> Float32:
        """x [m, k] times the transpose of the weight, or of one expert's: [m, n]."""
        y = self._pool.take(x.shape[0], weight.n)
        for start, rows in self._weights.rows(weight, expert):
            np.matmul(x, rows.T, out=y[:, start : start + len(rows)])
        return y

    def rms_norm(self, x: Float32, weight: Float32, epsilon: float) -> Float32:
        root = np.vecdot(x, x)[..., None]
        root /= np.float32(x.shape[-1])
        root += np.float32(epsilon)
        np.sqrt(root, out=root)
        y = self._pool.take(*x.shape)
        np.divide(x, root, out=y)
        y *= weight
        return y

    def rope(self, x: Float32, rotary: Rotary, position: int) -> Float32:
        cosine, sine = self._turns.at(rotary, position, position + x.shape[0])
        half = rotary.dimensions // 2
        if rotary.interleaved:
            first, second = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
        else:
            first, second = x[..., :half], x[..., half : 2 * half]
        crossed = np.multiply(first, sine, out=self._pool.take(*first.shape))
        first *= cosine
        first -= np.multiply(second, sine, out=self._pool.take(*first.shape))
        second *= cosine
        second += crossed
        return x

    def kv_cache(self, layers: int, capacity: int, kv_heads: int, key_length: int, value_length: int) -> NumpyKvCache:
        cache = NumpyKvCache(layers, capacity, kv_heads, key_length, value_length)
        self._caches.append(cache)
        return cache

    def kv_write(self, cache: KvCache, layer: int, k: Float32, v: Float32, position: int) -> None:
        assert isinstance(cache, NumpyKvCache)
        end = position + k.shape[0]
        cache.reserve(end)
        cache.keys[layer, :, position:end] = k.transpose(1, 0, 2)
        cache.values[layer, :, position:end] = v.transpose(1, 0, 2)

    def attention(
        self, q: Float32, cache: KvCache, layer: int, position: int, scale: float, window: int | None, softcap: float | None
    ) -> Float32:
        assert isinstance(cache, NumpyKvCache)
        end = position + q.shape[0]
        keys, values = cache.keys[layer, :, :end], cache.values[layer, :, :end]
        return self._attend(q, keys, values, position, scale, window, softcap)

    def add(self, x: Float32, y: Float32) -> Float32:
        x += y
        return x

    def gated(self, gate: Float32, up: Float32, activation: str) -> Float32:
        inner = self._pool.take(*gate.shape)
        if activation == "silu":
            # x / (1 + exp(-x)) as x * (1 + tanh(x / 2)) / 2: it cannot overflow.
            np.multiply(gate, np.float32(0.5), out=inner)
        else:
            np.multiply(gate, gate, out=inner)
            inner *= np.float32(0.044715) * _GELU
            inner += _GELU
            inner *= gate
        np.tanh(inner, out=inner)
        inner += np.float32(1.0)
        inner *= np.float32(0.5)
        gate *= inner
        gate *= up
        return gate

    def route(self, logits: Float32, used: int) -> Routing:
        chosen = np.argsort(-logits, axis=-1, kind="stable")[:, :used]
        # A softmax over all experts rescaled to the chosen ones is the softmax over the chosen ones.
        weights = np.exp(np.take_along_axis(logits, chosen, -1) - np.take_along_axis(logits, chosen[:, :1], -1))
        return Routing(chosen, weights / weights.sum(axis=-1, keepdims=True))

    def expert_linear(self, weight: Matrix, x: Float32, routing: Routing) -> Float32:
        rows = routing.experts
        out = self._pool.take(*rows.shape, weight.n)
        for expert in np.unique(rows):
            token, slot = np.nonzero(rows == expert)
            inputs = x[token] if x.ndim == 2 else x[token, slot]
            out[token, slot] = self._times(inputs, weight, int(expert))
        return out

    def combine(self, y: Float32, routing: Routing) -> Float32:
        out: Float32 = np.einsum("mun,mu->mn", y, routing.weights)
        return out

    def softcap(self, x: Float32, cap: float) -> Float32:
        x = x / np.float32(cap)
        np.tanh(x, out=x)
        x *= np.float32(cap)
        return x

    def last_rows(self, x: Float32, count: int) -> Float32:
        return x[x.shape[0] - count :]

    def to_numpy(self, x: Float32) -> Float32:
        return x

    def default_ubatch(self, activation_bytes: int) -> int:
        """BLAS gains nothing beyond this."""
        return 512

    def replay(self, key: tuple[int, int, int], body: Callable[[], Float32 | None]) -> Float32 | None:
        return body()

    def synchronize(self) -> None:
        """Every operation is done when it returns."""

    def memory(self) -> dict[str, int]:
        return {
            "dequantised weights": self._weights.kept_bytes + self._weights.buffer_bytes,
            "kv cache": sum(cache.nbytes for cache in self._caches),
            "scratch": self._turns.nbytes + self._pool.nbytes,
        }
