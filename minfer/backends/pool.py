"""Memory for activations, used again as soon as nothing refers to it.

A fresh array of a few megabytes costs a page fault for each 4 KiB, on a virtual machine as much as the arithmetic that
fills it. CPython's reference count says exactly when a buffer is free, views included: NumPy gives each view its owner.
"""

from __future__ import annotations

import sys
from math import prod

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]

_LEAST, _MOST = 1 << 14, 1 << 24
"""Elements: smaller arrays come cheaply from the allocator, larger ones (logits of a whole text) are not worth keeping."""


class Pool:
    """Buffers in sizes of powers of two, so that a few serve every shape; never more than were in use at one time."""

    def __init__(self) -> None:
        self._buffers: dict[int, list[Float32]] = {}

    @property
    def nbytes(self) -> int:
        return sum(size * len(buffers) * 4 for size, buffers in self._buffers.items())

    def take(self, *shape: int) -> Float32:
        """An array of ``shape`` with unspecified contents, used by nobody else while anything refers to it."""
        count = prod(shape)
        if not _LEAST <= count <= _MOST:
            return np.empty(shape, np.float32)
        size = 1 << (count - 1).bit_length()
        buffers = self._buffers.setdefault(size, [])
        buffer = _idle(buffers)
        if buffer is None:
            buffer = np.empty(size, np.float32)
            buffers.append(buffer)
        return buffer[:count].reshape(shape)


def _references(buffers: list[Float32]) -> list[int]:
    return [sys.getrefcount(buffer) for buffer in buffers]


# What the line above counts for a buffer that only its list holds: it differs between versions of CPython.
_NOBODY = _references([np.empty(1, np.float32)])[0]


def _idle(buffers: list[Float32]) -> Float32 | None:
    counts = _references(buffers)
    return buffers[counts.index(_NOBODY)] if _NOBODY in counts else None
