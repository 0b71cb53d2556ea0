"""Fewer points than pixels, without losing what the eye looks for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def extremes(values: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Rows to draw of a line: the lowest and the highest of each of ``most // 2`` equal stretches, first and last kept.

    ``values`` [rows]; NaN counts as neither. Returns sorted unique row numbers, at most ``most`` + 2 of them.
    A spike of one row survives, which an average would hide.
    """
    count = values.shape[0]
    if count <= most:
        return np.arange(count, dtype=np.int64)
    buckets = max(1, most // 2)
    edges = np.linspace(0, count, buckets + 1).astype(np.int64)
    rows = np.arange(count, dtype=np.int64)
    bucket = np.searchsorted(edges, rows, side="right") - 1
    finite = np.isfinite(values)
    low = np.where(finite, values, np.inf)
    high = np.where(finite, values, -np.inf)
    by_low = np.lexsort((low, bucket))
    by_high = np.lexsort((-high, bucket))
    firsts = np.searchsorted(bucket, np.arange(buckets))
    chosen = np.concatenate([by_low[firsts], by_high[firsts], [0, count - 1]])
    return np.unique(chosen)


def representatives(values: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Rows to draw of a stack: the row of middle value of each of ``most`` equal stretches, and always the last row.

    A stack cannot be drawn by extremes, since its parts belong together; each bar stays one real commit.
    """
    count = values.shape[0]
    if count <= most:
        return np.arange(count, dtype=np.int64)
    edges = np.linspace(0, count, most + 1).astype(np.int64)
    chosen = []
    for start, stop in pairwise(edges):
        order = np.argsort(values[start:stop], kind="stable")
        chosen.append(start + order[(stop - start - 1) // 2])
    chosen[-1] = count - 1
    return np.unique(np.array(chosen, dtype=np.int64))
