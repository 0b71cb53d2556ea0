"""Greedy merging of neighbours, best pair first: what byte-pair encoding and SentencePiece's own BPE have in common."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush


def merge(symbols: list[str], rank: Callable[[str, str], float | None]) -> list[str]:
    """Merge neighbours, the pair of lowest rank first and of equal ranks the leftmost, until no pair has a rank.

    ``symbols`` is used up. O(n log n) in its length: a heap of pairs over a doubly linked list.
    """
    count = len(symbols)
    before, after = list(range(-1, count - 1)), [*range(1, count), -1]
    heap: list[tuple[float, int, str, int]] = []
    for left in range(count - 1):
        found = rank(symbols[left], symbols[left + 1])
        if found is not None:
            heap.append((found, left, symbols[left] + symbols[left + 1], left + 1))
    heapify(heap)
    while heap:
        _, left, merged, right = heappop(heap)
        # A pair is out of date once either side has been merged: its text differs then, or its right side is gone.
        if after[left] != right or symbols[left] + symbols[right] != merged or not symbols[left]:
            continue
        symbols[left], symbols[right] = merged, ""
        follower = after[right]
        after[left] = follower
        if follower >= 0:
            before[follower] = left
            found = rank(merged, symbols[follower])
            if found is not None:
                heappush(heap, (found, left, merged + symbols[follower], follower))
        if (leader := before[left]) >= 0:
            found = rank(symbols[leader], merged)
            if found is not None:
                heappush(heap, (found, leader, symbols[leader] + merged, left))
    return [symbol for symbol in symbols if symbol]
