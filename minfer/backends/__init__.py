"""What a backend must do: the operations of a forward pass, on arrays of its own.

A model calls these and nothing else; an array is opaque to it but for ``shape`` and ``reshape``. Every operation works on m
tokens at once. Activations are float32 in meaning: a backend may hold them in another form between its own operations, and
``to_numpy`` gives float32. An operation may overwrite its activation arguments where its docstring says so, and may return
memory that a later operation reuses, so a model never keeps an activation longer than until the next residual sum.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import MinferError
from ..gates import resolve
from ..gguf import Tensor
from ..kernels import KernelError
from ..rotary import Rotary

Array = Any
"""A backend's array: has ``shape`` and ``reshape``."""
Gates = Mapping[str, bool | int | str]


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A weight [n, k], or [experts, n, k], made ready by a backend."""

    tensor: Tensor
    data: Any
    """The backend's own."""

    @property
    def n(self) -> int:
        return self.tensor.shape[-2]

    @property
    def k(self) -> int:
        return self.tensor.shape[-1]


class KvCache(Protocol):
    """Keys and values of all layers, for positions 0 to ``capacity`` - 1."""

    capacity: int


class Backend(Protocol):
    """One way to run the operations."""

    name: str
    gates: dict[str, bool | int | str]
    """The switches in force, recorded with every result."""

    def matrix(self, tensor: Tensor) -> Matrix: ...

    def vector(self, tensor: Tensor) -> Array:
        """A norm's or bias's weights [n], float32."""
        ...

    def tokens(self, ids: NDArray[np.int32]) -> Array:
        """Token ids [m], brought to where ``embedding`` reads them."""
        ...

    def embedding(self, table: Matrix, tokens: Array, scale: float) -> Array:
        """Rows of the table times ``scale``: [m, k]."""
        ...

    def linear(self, weight: Matrix, x: Array, bias: Array | None = None) -> Array:
        """x [m, k] times the weight's transpose, plus the bias [n]: [m, n]."""
        ...

    def rms_norm(self, x: Array, weight: Array, epsilon: float) -> Array:
        """x [..., d] / sqrt(mean(x^2) + epsilon) * weight [d], over the last axis; x stays as it was."""
        ...

    def rope(self, x: Array, rotary: Rotary, position: int) -> Array:
        """Turn the heads of x [m, heads, d], whose first token is at ``position``. May overwrite x."""
        ...

    def kv_cache(self, layers: int, capacity: int, kv_heads: int, key_length: int, value_length: int) -> KvCache: ...

    def kv_write(self, cache: KvCache, layer: int, k: Array, v: Array, position: int) -> None:
        """Put k [m, kv_heads, key_length] and v [m, kv_heads, value_length] at ``position`` onwards."""
        ...

    def attention(
        self, q: Array, cache: KvCache, layer: int, position: int, scale: float, window: int | None, softcap: float | None
    ) -> Array:
        """Causal attention of q [m, heads, key_length], first token at ``position``, over what the cache holds up to each
        token itself: [m, heads * value_length]. ``window`` keeps the token and the window - 1 before it. ``softcap`` c turns
        scores s into c * tanh(s / c) before the mask."""
        ...

    def add(self, x: Array, y: Array) -> Array:
        """x + y, same shapes. May overwrite x."""
        ...

    def gated(self, gate: Array, up: Array, activation: str) -> Array:
        """activation(gate) * up, "silu" or "gelu" (the tanh form). May overwrite both."""
        ...

    def route(self, logits: Array, used: int) -> Any:
        """Choose ``used`` experts of each of m tokens from router logits [m, experts]: softmax over all experts, the largest
        ``used`` of them, rescaled to sum to 1. The result is opaque; the two operations below take it."""
        ...

    def expert_linear(self, weight: Matrix, x: Array, routing: Any) -> Array:
        """Each token through its chosen experts: x [m, k], or [m, used, k] one row an expert; weight [experts, n, k]:
        [m, used, n]."""
        ...

    def combine(self, y: Array, routing: Any) -> Array:
        """Sum of a token's experts' results y [m, used, n], each times its router weight: [m, n]."""
        ...

    def softcap(self, x: Array, cap: float) -> Array:
        """cap * tanh(x / cap). May overwrite x."""
        ...

    def last_rows(self, x: Array, count: int) -> Array:
        """The last ``count`` of m rows."""
        ...

    def to_numpy(self, x: Array) -> NDArray[np.float32]: ...

    def default_ubatch(self, activation_bytes: int) -> int:
        """Tokens to run at once where the caller does not say, from the bytes that one token's activations take."""
        ...

    def replay(self, key: tuple[int, int, int], body: Callable[[], Array | None]) -> Array | None:
        """Run ``body``, a forward pass over arrays made before it. ``key`` is (tokens, wanted rows, position): a backend may
        keep what it launched, and launch that again for a later key of the same launches instead of calling ``body``."""
        ...

    def synchronize(self) -> None:
        """Wait until all that was asked for is done."""
        ...

    def memory(self) -> dict[str, int]:
        """Bytes held now beyond the mapped file and caches: "dequantised weights", "scratch", ..."""
        ...


BACKENDS: Sequence[str] = ("auto", "numpy", "cuda")


def make_backend(name: str, gates: Gates) -> Backend:
    """The backend called ``name``; "auto" is cuda where a device and CuPy are usable, else numpy. Raises MinferError."""
    if name not in BACKENDS:
        raise MinferError(f"backend {name!r} is unknown, expected one of {', '.join(BACKENDS)}")
    if name == "cuda" or (name == "auto" and _cuda_usable()):
        try:
            cuda = importlib.import_module(".cuda", __name__)
        except ImportError as error:
            raise MinferError(f"backend 'cuda' cannot be loaded ({error}); install minfer[cuda], or use numpy") from error
        backend: Backend = cuda.CudaBackend(gates)
        return backend
    return _on_the_cpu(gates)


def _on_the_cpu(gates: Gates) -> Backend:
    """NumPy with compiled kernels, or alone: where gate ``native`` is off, or, said once, where they cannot be compiled."""
    from .numpy import NumpyBackend

    if resolve("numpy", gates)["native"]:
        from ..kernels import host
        from .native import NativeBackend

        try:
            return NativeBackend(gates, host.library())
        except KernelError as error:
            _say_once(f"minfer: the CPU runs NumPy alone, more slowly: {error}; --gate native=0 does so in silence")
    return NumpyBackend(gates)


@cache
def _say_once(line: str) -> None:
    print(line, file=sys.stderr)


def _cuda_usable() -> bool:
    try:
        return bool(importlib.import_module(".cuda", __name__).usable())
    except ImportError:
        return False
