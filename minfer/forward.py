"""The operations of a forward pass as models call them: each told to the observer, then run by the backend.

MACs and bytes are counted here, from shapes alone. Bytes are the fewest that an operation must move: inputs once as
stored (weights in their quantised form, activations as float32), outputs once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod
from typing import Any

from .backends import Array, Backend, KvCache, Matrix
from .operations import Observer, Operation, observed
from .rotary import Rotary

_FLOAT = 4
"""Bytes of an activation."""


@dataclass(frozen=True, slots=True)
class Attention:
    """What a layer's attention needs to know beyond its queries."""

    rotary: Rotary
    scale: float
    window: int | None
    softcap: float | None


@dataclass(slots=True)
class Forward:
    """One run of the model over m tokens, the first of them at ``position``."""

    backend: Backend
    observer: Observer | None
    cache: KvCache
    position: int
    rows: int
    """How many of the last tokens' logits are wanted: 0, 1 or all m."""

    def observed(self, describe: Callable[[], Operation]) -> AbstractContextManager[None]:
        """Run the body as the operation that ``describe`` gives."""
        return observed(self.observer, describe)

    def embedding(self, table: Matrix, tokens: Array, scale: float = 1.0) -> Array:
        m = tokens.shape[0]
        row = table.tensor.nbytes // table.n
        with self.observed(lambda: _operation("token_embd", "embedding", None, m, table.k, m * (row + table.k * _FLOAT))):
            return self.backend.embedding(table, tokens, scale)

    def linear(self, name: str, layer: int | None, weight: Matrix, x: Array, bias: Array | None = None) -> Array:
        with self.observed(lambda: _linear(name, f"{weight.tensor.type.name} GEMM", layer, weight, x.shape[0], bias)):
            return self.backend.linear(weight, x, bias)

    def logits(self, weight: Matrix, x: Array, softcap: float | None = None) -> Array:
        """The output head over the rows that are wanted."""
        with self.observed(lambda: _linear("output", "logits", None, weight, x.shape[0], None)):
            scores = self.backend.linear(weight, x)
        if softcap is None:
            return scores
        with self.observed(lambda: _elementwise("output_softcap", None, scores, 1)):
            return self.backend.softcap(scores, softcap)

    def norm(self, name: str, layer: int | None, weight: Array, x: Array, epsilon: float) -> Array:
        m, n = x.shape[0], prod(x.shape[1:])
        moved = (2 * m * n + prod(weight.shape)) * _FLOAT
        with self.observed(lambda: _operation(name, "norm", layer, m, n, moved)):
            return self.backend.rms_norm(x, weight, epsilon)

    def rope(self, name: str, layer: int, x: Array, rotary: Rotary) -> Array:
        """x [m, heads, d]."""
        m, turned = x.shape[0], x.shape[1] * rotary.dimensions
        with self.observed(lambda: _operation(name, "rope", layer, m, turned, 2 * m * turned * _FLOAT)):
            return self.backend.rope(x, rotary, self.position)

    def attention(self, layer: int, q: Array, k: Array, v: Array, how: Attention) -> Array:
        """Write k and v [m, kv_heads, d] to the cache, then attend with q [m, heads, d]: [m, heads * value length]."""
        m, written = q.shape[0], q.shape[0] * (prod(k.shape[1:]) + prod(v.shape[1:]))
        with self.observed(lambda: _operation("kv_write", "kv write", layer, m, written // m, 2 * written * _FLOAT)):
            self.backend.kv_write(self.cache, layer, k, v, self.position)
        with self.observed(lambda: _attention(layer, q, v, self.position, how.window)):
            return self.backend.attention(q, self.cache, layer, self.position, how.scale, how.window, how.softcap)

    def add(self, name: str, layer: int, x: Array, y: Array) -> Array:
        with self.observed(lambda: _elementwise(name, layer, x, 2)):
            return self.backend.add(x, y)

    def gated(self, layer: int, gate: Array, up: Array, activation: str) -> Array:
        with self.observed(lambda: _elementwise("ffn_act", layer, gate, 2)):
            return self.backend.gated(gate, up, activation)

    def route(self, layer: int, weight: Matrix, x: Array, used: int) -> Any:
        """Choose each token's experts."""
        with self.observed(lambda: _linear("ffn_gate_inp", "router", layer, weight, x.shape[0], None)):
            scores = self.backend.linear(weight, x)
        m = x.shape[0]
        with self.observed(lambda: _operation("ffn_route", "router", layer, m, used, m * (weight.n + 2 * used) * _FLOAT)):
            return self.backend.route(scores, used)

    def expert_linear(self, name: str, layer: int, weight: Matrix, x: Array, routing: Any, used: int) -> Array:
        """Each token through its ``used`` experts. Bytes suppose that as many experts are read as there are choices."""
        m, experts = x.shape[0], weight.tensor.shape[0]
        rows = m * used
        read = weight.tensor.nbytes // experts * min(experts, rows)
        kind = weight.tensor.type.name
        moved = read + (prod(x.shape) + rows * weight.n) * _FLOAT
        macs = rows * weight.n * weight.k
        with self.observed(lambda: Operation(name, f"{kind} GEMM", layer, rows, weight.n, weight.k, kind, macs, moved)):
            return self.backend.expert_linear(weight, x, routing)

    def combine(self, layer: int, y: Array, routing: Any) -> Array:
        m, used, n = y.shape
        with self.observed(lambda: _operation("ffn_combine", "elementwise", layer, m, n, m * n * (used + 1) * _FLOAT)):
            return self.backend.combine(y, routing)

    def wanted_rows(self, x: Array) -> Array:
        """Of the last layer's rows those whose logits are wanted: what follows attention runs on these alone."""
        return x if self.rows == x.shape[0] else self.backend.last_rows(x, self.rows)


def _attention(layer: int, q: Array, v: Array, position: int, window: int | None) -> Operation:
    m, heads, width = q.shape
    end, value_width = position + m, v.shape[2]
    first = 0 if window is None else max(0, position + 1 - window)
    moved = m * heads * (width + value_width) + (end - first) * v.shape[1] * (width + value_width)
    macs = visible_pairs(position, m, window) * heads * (width + value_width)
    return Operation("attention", "attention", layer, m, heads * value_width, end, None, macs, moved * _FLOAT)


def visible_pairs(position: int, m: int, window: int | None) -> int:
    """Query-key pairs that the mask keeps for m tokens, the first at ``position``: token p sees min(p + 1, window) keys."""
    last = position + m
    if window is None or window >= last:
        return (position + 1 + last) * m // 2
    full = max(0, last - max(position, window))
    partial = m - full
    return full * window + (position + 1 + position + partial) * partial // 2


def _operation(name: str, kernel_class: str, layer: int | None, m: int, n: int, moved: int) -> Operation:
    return Operation(name, kernel_class, layer, m, n, 0, None, 0, moved)


def _elementwise(name: str, layer: int | None, x: Array, inputs: int) -> Operation:
    m, n = x.shape[0], prod(x.shape[1:])
    return _operation(name, "elementwise", layer, m, n, m * n * (inputs + 1) * _FLOAT)


def _linear(name: str, kernel_class: str, layer: int | None, weight: Matrix, m: int, bias: Array | None) -> Operation:
    n, k = weight.n, weight.k
    moved = weight.tensor.nbytes + (m * k + m * n + (0 if bias is None else n)) * _FLOAT
    return Operation(name, kernel_class, layer, m, n, k, weight.tensor.type.name, m * n * k, moved)
