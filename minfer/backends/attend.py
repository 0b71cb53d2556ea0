"""Attention on NumPy, a block of queries at a time.

A block needs only the keys that its mask leaves, so causal attention does little more than half of the square, a sliding
window less, and the scores stay in a core's cache instead of growing with the square of the prompt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .pool import Pool

Float32 = NDArray[np.float32]

_QUERIES = 64
"""Queries in a block; 32 to 128 measure alike on an EPYC with 512 tokens, four heads of 256."""

_FEW_ROWS = 16
"""Below it the keys are the left factor: OpenBLAS copies the right one, which for one token is most of the work."""

_LATER = np.triu(np.full((_QUERIES, _QUERIES), -np.inf, np.float32), 1)
"""Added to the scores of a block's own keys: a token does not see those after it."""


class Attend:
    """Takes its memory from ``pool``."""

    def __init__(self, pool: Pool) -> None:
        self._take = pool.take

    def __call__(
        self,
        q: Float32,
        keys: Float32,
        values: Float32,
        position: int,
        scale: float,
        window: int | None,
        softcap: float | None,
    ) -> Float32:
        """q [m, heads, d] over keys [kv_heads, position + m, d] and values [kv_heads, position + m, dv]: [m, heads * dv]."""
        m, heads, width = q.shape
        kv_heads, group = keys.shape[0], heads // keys.shape[0]
        out = self._take(m, heads, values.shape[2])
        for start in range(0, m, _QUERIES):
            n = min(_QUERIES, m - start)
            here = position + start
            first = 0 if window is None else max(0, here - window + 1)
            # One matrix product serves all heads of a group: [kv_heads, group * n, d].
            scaled = self._take(kv_heads, group, n, width)
            block = q[start : start + n].reshape(n, kv_heads, group, width).transpose(1, 2, 0, 3)
            np.multiply(block, np.float32(scale), out=scaled)
            scores = self._take(kv_heads, group * n, here + n - first)
            _dot(scaled.reshape(kv_heads, -1, width), keys[:, first : here + n], scores)
            total = _exponentials(scores.reshape(heads, n, -1), here - first, window, softcap)
            mixed = self._take(kv_heads, group * n, values.shape[2])
            np.matmul(scores, values[:, first : here + n], out=mixed)
            np.divide(mixed.reshape(heads, n, -1), total, out=out[start : start + n].transpose(1, 0, 2))
        return out.reshape(m, -1)


def _dot(q: Float32, keys: Float32, scores: Float32) -> None:
    """scores [kv_heads, rows, keys] of q [kv_heads, rows, d] and keys [kv_heads, keys, d]."""
    if q.shape[1] < _FEW_ROWS:
        scores[...] = np.matmul(keys, q.transpose(0, 2, 1)).transpose(0, 2, 1)
    else:
        np.matmul(q, keys.transpose(0, 2, 1), out=scores)


def _exponentials(scores: Float32, before: int, window: int | None, softcap: float | None) -> Float32:
    """Turn scores [heads, n, before + n] into exp(score - the row's largest), in place; returns row sums [heads, n, 1].

    Query i is key ``before + i``; keys after it, and those ``window`` or more before it, become 0.
    """
    n = scores.shape[1]
    if softcap is not None:
        scores /= np.float32(softcap)
        np.tanh(scores, out=scores)
        scores *= np.float32(softcap)
    scores[:, :, before:] += _LATER[:n, :n]
    if window is not None and before + n > window:
        distance = np.arange(before, before + n)[:, None] - np.arange(before + n - window)[None, :]
        scores[:, :, : before + n - window] += np.where(distance >= window, np.float32(-np.inf), np.float32(0))
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    total: Float32 = scores.sum(axis=-1, keepdims=True)
    return total
