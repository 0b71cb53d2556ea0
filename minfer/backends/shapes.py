"""A backend that computes nothing: its arrays are shapes. A model run on it says what it would do, at no cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gguf import Tensor
from ..rotary import Rotary
from . import KvCache, Matrix


@dataclass(frozen=True, slots=True)
class Shape:
    """Stands for an array."""

    shape: tuple[int, ...]

    def reshape(self, *shape: int) -> Shape:
        """The same elements in other axes; one axis may be -1."""
        known = prod(length for length in shape if length >= 0)
        return Shape(tuple(prod(self.shape) // known if length < 0 else length for length in shape))


@dataclass(slots=True)
class ShapeCache:
    capacity: int
    value_length: int


class ShapeBackend:
    """See ``Backend``."""

    name = "shapes"

    def __init__(self) -> None:
        self.gates: dict[str, bool | int | str] = {}

    def matrix(self, tensor: Tensor) -> Matrix:
        return Matrix(tensor, None)

    def vector(self, tensor: Tensor) -> Shape:
        return Shape(tensor.shape)

    def tokens(self, ids: NDArray[np.int32]) -> Shape:
        return Shape(ids.shape)

    def embedding(self, table: Matrix, tokens: Shape, scale: float) -> Shape:
        return Shape((tokens.shape[0], table.k))

    def linear(self, weight: Matrix, x: Shape, bias: Shape | None = None) -> Shape:
        return Shape((x.shape[0], weight.n))

    def rms_norm(self, x: Shape, weight: Shape, epsilon: float) -> Shape:
        return x

    def rope(self, x: Shape, rotary: Rotary, position: int) -> Shape:
        return x

    def kv_cache(self, layers: int, capacity: int, kv_heads: int, key_length: int, value_length: int) -> KvCache:
        return ShapeCache(capacity, value_length)

    def kv_write(self, cache: KvCache, layer: int, k: Shape, v: Shape, position: int) -> None:
        """Nothing is kept."""

    def attention(
        self, q: Shape, cache: KvCache, layer: int, position: int, scale: float, window: int | None, softcap: float | None
    ) -> Shape:
        assert isinstance(cache, ShapeCache)
        return Shape((q.shape[0], q.shape[1] * cache.value_length))

    def add(self, x: Shape, y: Shape) -> Shape:
        return x

    def gated(self, gate: Shape, up: Shape, activation: str) -> Shape:
        return gate

    def route(self, logits: Shape, used: int) -> int:
        return used

    def expert_linear(self, weight: Matrix, x: Shape, routing: int) -> Shape:
        return Shape((x.shape[0], routing, weight.n))

    def combine(self, y: Shape, routing: int) -> Shape:
        return Shape((y.shape[0], y.shape[2]))

    def softcap(self, x: Shape, cap: float) -> Shape:
        return x

    def last_rows(self, x: Shape, count: int) -> Shape:
        return Shape((count, *x.shape[1:]))

    def to_numpy(self, x: Any) -> NDArray[np.float32]:
        raise TypeError("shapes hold no numbers")

    def default_ubatch(self, activation_bytes: int) -> int:
        raise TypeError("shapes run nothing")

    def replay(self, key: tuple[int, int, int], body: Callable[[], Shape | None]) -> Shape | None:
        return body()

    def synchronize(self) -> None:
        """Nothing runs."""

    def memory(self) -> dict[str, int]:
        return {}
