"""What stays in a mapped GGUF file until it is asked for: the tensors, and arrays of strings."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import overload

import numpy as np
from numpy.typing import NDArray

from .errors import MinferError
from .quantisation import Bytes, Float32, Quantisation, dequantise, is_weight


class StringArray(Sequence[str]):
    """Strings that stay in the mapped file: where each starts is known, each is decoded when asked for."""

    def __init__(self, data: mmap.mmap, starts: NDArray[np.int64]) -> None:
        self._data = data
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._decode(int(start)) for start in self._starts[index]]
        return self._decode(int(self._starts[index]))

    def __iter__(self) -> Iterator[str]:
        return (self._decode(start) for start in self._starts.tolist())

    def _decode(self, start: int) -> str:
        (length,) = struct.unpack_from("<Q", self._data, start)
        return self._data[start + 8 : start + 8 + length].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor, still in the file. ``shape`` is row-major, unlike ggml's own order: a matrix is [n rows, k columns]."""

    name: str
    shape: tuple[int, ...]
    type: Quantisation
    offset: int
    """From the start of its file, bytes."""
    nbytes: int
    file: str
    _data: mmap.mmap = field(repr=False, compare=False)

    @property
    def raw(self) -> Bytes:
        """The stored bytes [..., bytes per row]: a view of the mapped file, read-only."""
        flat = np.frombuffer(self._data, np.uint8, self.nbytes, self.offset)
        return flat.reshape(*self.shape[:-1], self.nbytes // prod(self.shape[:-1]))

    def dequantise(self) -> Float32:
        """All weights as float32, of ``shape``. Raises MinferError for types that hold no weights."""
        if not is_weight(self.type):
            raise MinferError(f"{self.file}: tensor {self.name!r} is {self.type.name}, which holds no weights; convert it")
        return dequantise(self.raw, self.type).reshape(self.shape)
