"""What ``Backend`` asks for, on a GPU. Activations are f16 between products, the residual is f32."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...gates import GateValue, resolve
from ...gguf import Tensor
from ...rotary import Rotary
from .. import Backend, Gates, KvCache, Matrix
from . import attention_hopper, launch
from .arrays import Arena, DeviceArray, overlap
from .cache import CudaKvCache, make_cache
from .device import Device
from .experts import Experts, Routing
from .graphs import Graphs
from .products import Products

_DOWN_SCALE = 1.0 / 16.0
"""The gated activations are stored at a sixteenth: f16 then reaches 1,048,064, and what is lost lies below 1e-6."""
_LEAST_UBATCH, _MOST_UBATCH = 256, 8192
"""Tokens. Beyond the second, reading the weights again is under a hundredth of the products' time."""


class CudaBackend:
    """See ``Backend``. One stream, one arena of activations, weights as they are stored."""

    name = "cuda"

    def __init__(self, gates: Gates) -> None:
        self.gates: dict[str, GateValue] = resolve("cuda", gates)
        self.device = Device()
        self.device.use()
        self._arena = Arena(self.device.allocate)
        self.products = Products(self.device, self._arena, self.gates)
        self._experts = Experts(self.device, self._arena, self.gates)
        self._kept: list[Any] = []
        self._cache_bytes = 0
        self._capacity = 0
        self._turns: dict[Rotary, DeviceArray] = {}
        self._state = self._filled(np.zeros(1, np.int32), "i32")
        self._overflow = self._filled(np.zeros(1, np.int32), "i32")
        self._graphs = Graphs(self.device, self._arena)
        self._position = 0
        self._mark = self._arena.mark()

    def _filled(self, host: NDArray[Any], dtype: str) -> DeviceArray:
        """A device copy of ``host`` that lives as long as the backend."""
        memory = self.device.allocate(host.nbytes)
        self._kept.append(memory)
        self.device.upload(memory.pointer, host)
        self.device.stream.synchronize()
        return DeviceArray(memory.pointer, host.shape, dtype)

    def matrix(self, tensor: Tensor) -> Matrix:
        return Matrix(tensor, self.products.upload(tensor))

    def vector(self, tensor: Tensor) -> DeviceArray:
        return self._filled(np.ascontiguousarray(tensor.dequantise(), np.float32), "f32")

    def tokens(self, ids: NDArray[np.int32]) -> DeviceArray:
        self.device.use()
        self._arena.settle()
        tokens = self._arena.take(ids.shape, "i32")
        self.device.upload(tokens.pointer, np.ascontiguousarray(ids, np.int32))
        return tokens

    def embedding(self, table: Matrix, tokens: DeviceArray, scale: float) -> DeviceArray:
        out = self._arena.take((tokens.shape[0], table.k), "f32")
        launch.embedding(self.device, table.data.kind, table.data.pointer, tokens, out, scale)
        self._mark = self._arena.mark()
        return out

    def linear(self, weight: Matrix, x: DeviceArray, bias: DeviceArray | None = None) -> DeviceArray:
        return self.products(weight, x, bias)

    def _settled(self, x: DeviceArray) -> DeviceArray:
        """x with nothing left to be added."""
        if x.bias is not None:
            launch.add_bias(self.device, x.reshape(x.shape[0], -1), x.bias)
            x.bias = None
        if x.addend is not None:
            launch.add_residual(self.device, x, x.addend)
            x.addend = None
            self._arena.release(self._mark)
        return x

    def rms_norm(self, x: DeviceArray, weight: DeviceArray, epsilon: float) -> DeviceArray:
        if x.addend is not None:
            return self._norm_of_sum(x, x.addend, weight, epsilon)
        out = self._arena.take(x.shape, "f16")
        launch.rms_norm(self.device, self._settled(x), weight, out, epsilon)
        return out

    def _norm_of_sum(self, x: DeviceArray, y: DeviceArray, weight: DeviceArray, epsilon: float) -> DeviceArray:
        """x += y, and the norm of the sum, in one pass. All but y is free again: the result must only not lie on it."""
        self._arena.release(self._mark)
        out = self._arena.take(x.shape, "f16")
        while overlap(out, y):
            out = self._arena.take(x.shape, "f16")
        launch.rms_norm_residual(self.device, x, y, weight, out, epsilon)
        x.addend = None
        return out

    def rope(self, x: DeviceArray, rotary: Rotary, position: int) -> DeviceArray:
        turns = self._turns.get(rotary)
        if turns is None:
            angles = np.outer(np.arange(self._capacity), rotary.frequencies)
            table = np.stack((np.cos(angles), np.sin(angles)), axis=-1) * rotary.magnitude
            turns = self._turns[rotary] = self._filled(table.astype(np.float32), "f32")
        self._at(position)
        launch.rope(self.device, x, turns, self._state, rotary.interleaved, x.bias)
        x.bias = None
        return x

    def _at(self, position: int) -> None:
        """The device's position becomes ``position``."""
        if position != self._position:
            launch.set_position(self.device, self._state, position)
            self._position = position

    def kv_cache(self, layers: int, capacity: int, kv_heads: int, key_length: int, value_length: int) -> CudaKvCache:
        cache = make_cache(self.device, layers, capacity, kv_heads, key_length, value_length)
        self._capacity = max(self._capacity, capacity)
        self._cache_bytes += cache.keys.nbytes + cache.values.nbytes
        return cache

    def kv_write(self, cache: KvCache, layer: int, k: DeviceArray, v: DeviceArray, position: int) -> None:
        assert isinstance(cache, CudaKvCache)
        self._at(position)
        launch.kv_write(self.device, self._settled(k), v, *cache.layer(layer), self._state)

    def attention(
        self,
        q: DeviceArray,
        cache: KvCache,
        layer: int,
        position: int,
        scale: float,
        window: int | None,
        softcap: float | None,
    ) -> DeviceArray:
        assert isinstance(cache, CudaKvCache)
        self._at(position)
        keys, values = cache.layer(layer)
        m, heads, width = self._settled(q).shape
        out = self._arena.take((m, heads * values.shape[2]), "f16")
        if m <= launch.FEW_ROWS:
            partial = self._arena.take((m, heads, launch.splits_for(position + m), values.shape[2] + 2), "f32")
            launch.attention_few(self.device, q, keys, values, partial, out, self._state, scale, window, softcap)
        elif self.gates["fa3"] and self.gates["fa"] and attention_hopper.can(self.device, width, values.shape[2], softcap):
            attention_hopper.attention(self.device, q, keys, values, out, self._state, scale, window)
        else:
            flash = bool(self.gates["fa"])
            launch.attention(self.device, q, keys, values, out, self._state, scale, window, softcap, flash)
        self._graphs.layer()
        return out

    def add(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        """Left to the next reader of x, which is a norm of the sum as a rule."""
        x = self._settled(x)
        x.addend = self._settled(y)
        return x

    def gated(self, gate: DeviceArray, up: DeviceArray, activation: str) -> DeviceArray:
        width = gate.shape[-1]
        gate, up = self._settled(gate), self._settled(up)
        launch.gated(self.device, gate.reshape(-1, width), up.reshape(-1, width), activation, _DOWN_SCALE, self._overflow)
        return DeviceArray(gate.pointer, gate.shape, "f16", 1.0 / _DOWN_SCALE)

    def route(self, logits: DeviceArray, used: int) -> Routing:
        return self._experts.route(logits, used)

    def expert_linear(self, weight: Matrix, x: DeviceArray, routing: Routing) -> DeviceArray:
        return self._experts.products(weight, x, routing)

    def combine(self, y: DeviceArray, routing: Routing) -> DeviceArray:
        return self._experts.combine(y, routing)

    def softcap(self, x: DeviceArray, cap: float) -> DeviceArray:
        launch.soft_cap(self.device, x, cap)
        return x

    def last_rows(self, x: DeviceArray, count: int) -> DeviceArray:
        return self._settled(x).rows(x.shape[0] - count)

    def to_numpy(self, x: DeviceArray) -> NDArray[np.float32]:
        x = self._settled(x)
        host = self.device.host_array(x.shape, np.float32 if x.dtype == "f32" else np.float16)
        overflow = self.device.host_array((1,), np.int32)
        self.device.fetch((host, x.pointer), (overflow, self._overflow.pointer))
        if overflow[0]:
            warnings.warn(
                "gated activations passed f16's range even at a sixteenth and were clamped; "
                "check the result against backend numpy",
                RuntimeWarning,
                stacklevel=2,
            )
            self.device.upload(self._overflow.pointer, np.zeros(1, np.int32))
        values = host.astype(np.float32, copy=False)
        return values if x.scale == 1.0 else values * np.float32(x.scale)

    def replay(self, key: tuple[int, int, int], body: Callable[[], DeviceArray | None]) -> DeviceArray | None:
        tokens, rows, position = key
        # Set before the pass, so that no graph holds a position.
        self._at(position)
        few = tokens <= launch.FEW_ROWS

        def gathering() -> DeviceArray | None:
            with self.products.gathering(few):
                return body()

        if not self.gates["graphs"]:
            return gathering()
        splits = launch.splits_for(position + tokens) if few else 0
        # A graph holds addresses: of the arena and of the scratch.
        addresses = (self._arena.generation, self.products.f16.pointer)
        return self._graphs.run((tokens, rows, splits, *addresses), gathering, eager=few)

    def default_ubatch(self, activation_bytes: int) -> int:
        """As many as half of the free memory holds: each pass over the weights then serves the most tokens."""
        free, _ = self.device.cupy.cuda.runtime.memGetInfo()
        return max(_LEAST_UBATCH, min(_MOST_UBATCH, int(free) // 2 // activation_bytes // 256 * 256))

    def synchronize(self) -> None:
        self.device.stream.synchronize()

    def memory(self) -> dict[str, int]:
        return {
            **self.products.memory(),
            "kv cache": self._cache_bytes,
            "activations": self._arena.nbytes,
        }


if TYPE_CHECKING:

    def _fits(backend: CudaBackend) -> Backend:
        """The type checker holds this class to the protocol here: it is loaded by name elsewhere."""
        return backend
