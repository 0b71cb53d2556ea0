"""Arrays on the device, and the arena that a forward pass takes its activations from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Protocol

SIZES = {"f16": 2, "f32": 4, "i32": 4, "u8": 1}
_ALIGN = 256


@dataclass(slots=True, eq=False)
class DeviceArray:
    """A contiguous array in device memory. The arena or the backend keeps the memory alive."""

    pointer: int
    shape: tuple[int, ...]
    dtype: str
    scale: float = 1.0
    """The true values are these times ``scale``, a power of two; a matrix product takes it back."""
    bias: DeviceArray | None = None
    """Still to be added to each token's values, by whichever kernel reads them next."""
    quantised: dict[str, tuple[DeviceArray, DeviceArray]] = field(default_factory=dict)
    """Its q8_1 forms (bytes, scales) by the kernel that reads them, made once for all products with it."""
    addend: DeviceArray | None = None
    """The same for a whole array: what a residual sum has not added yet."""

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * SIZES[self.dtype]

    def reshape(self, *shape: int) -> DeviceArray:
        """The same elements in other axes; one axis may be -1."""
        known = prod(length for length in shape if length >= 0)
        fixed = tuple(self.size // known if length < 0 else length for length in shape)
        if prod(fixed) != self.size:
            raise ValueError(f"array {self.shape} has {self.size} elements and cannot become {shape}")
        return DeviceArray(self.pointer, fixed, self.dtype, self.scale, self.bias, addend=self.addend)

    def rows(self, first: int) -> DeviceArray:
        """The rows from ``first`` on."""
        width = prod(self.shape[1:])
        return DeviceArray(
            self.pointer + first * width * SIZES[self.dtype],
            (self.shape[0] - first, *self.shape[1:]),
            self.dtype,
            self.scale,
        )


def overlap(a: DeviceArray, b: DeviceArray) -> bool:
    """Whether two arrays share memory."""
    return a.pointer < b.pointer + b.nbytes and b.pointer < a.pointer + a.nbytes


class Memory(Protocol):
    """What an arena takes its chunks from; it lives as long as somebody refers to it."""

    @property
    def pointer(self) -> int: ...


class Arena:
    """Gives out memory in order and takes all of it back at once.

    A forward pass asks for the same sizes at the same points each time, so its addresses repeat: what a CUDA graph needs. A
    pass that needs more than there is gets a further chunk; ``settle`` joins the chunks when nothing is in use.
    """

    def __init__(self, allocate: Callable[[int], Memory]) -> None:
        self._allocate = allocate
        self._chunks: list[tuple[int, int, Memory]] = []
        self._chunk = 0
        self._used = 0
        self.generation = 0
        """Rises when addresses change."""

    @property
    def nbytes(self) -> int:
        return sum(size for _, size, _ in self._chunks)

    def mark(self) -> tuple[int, int]:
        """The present fill, to be given to ``release``."""
        return self._chunk, self._used

    def release(self, mark: tuple[int, int]) -> None:
        """Take back all that was given out since ``mark``."""
        self._chunk, self._used = mark

    def take(self, shape: tuple[int, ...], dtype: str) -> DeviceArray:
        """An array of unset memory, aligned to 256 bytes."""
        need = -(-prod(shape) * SIZES[dtype] // _ALIGN) * _ALIGN
        while self._chunk < len(self._chunks):
            pointer, size, _ = self._chunks[self._chunk]
            if self._used + need <= size:
                self._used += need
                return DeviceArray(pointer + self._used - need, shape, dtype)
            self._chunk, self._used = self._chunk + 1, 0
        self._chunks.append(self._new(max(need, 1 << 20)))
        self.generation += 1
        self._used = need
        return DeviceArray(self._chunks[-1][0], shape, dtype)

    def settle(self) -> None:
        """Start a pass: everything is free; several chunks become one. Work that used them must be done or on one stream."""
        if len(self._chunks) > 1:
            total = self.nbytes
            self._chunks.clear()
            self._chunks.append(self._new(total))
            self.generation += 1
        self._chunk, self._used = 0, 0

    def _new(self, size: int) -> tuple[int, int, Memory]:
        memory = self._allocate(size)
        return memory.pointer, size, memory
