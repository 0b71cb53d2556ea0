"""Walks one GGUF file, version 2 or 3: a header, key-value metadata, tensor descriptions, then aligned tensor data.

Nothing is trusted: every count and length is held against the bytes that are there before anything is made of it.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import MinferError
from .mapped import StringArray, Tensor
from .quantisation import QUANTISATIONS

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_LONGEST_NAME = 65535
_MOST_DIMENSIONS = 4
_MOST_ENTRIES = 1 << 17
"""Tensors, or keys: a hundred times what the largest models have, so that a damaged count makes no million objects."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one file holds."""

    version: int
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]
    data: mmap.mmap


class Reader:
    """Walks one file from its start; ``_at`` is the next unread byte."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                magic = file.read(4)
                if magic != b"GGUF":
                    raise MinferError(f"{path}: not a GGUF file (starts {magic!r}, expected b'GGUF'); give a .gguf model")
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise MinferError(f"{path}: cannot be read ({error.strerror}); check the path") from error
        self._size = len(self._data)
        self._at = 4

    def read(self) -> Part:
        version = self._scalar("<I", "the version")
        if version not in (2, 3):
            kind = "big-endian" if version & 0xFFFF == 0 else f"version {version}"
            raise MinferError(f"{self._path}: GGUF {kind}, versions 2 and 3 little-endian are read; convert it again")
        tensor_count = self._count(self._scalar("<Q", "the tensor count"), 24, "tensors", _MOST_ENTRIES)
        key_count = self._count(self._scalar("<Q", "the key count"), 13, "metadata keys", _MOST_ENTRIES)
        metadata: dict[str, Any] = {}
        for _ in range(key_count):
            key = self._name("a metadata key")
            if key in metadata:
                raise self._error(f"metadata key {key!r} is there twice")
            metadata[key] = self._value(self._scalar("<I", f"the type of {key!r}"), key)
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 1 <= alignment <= 1 << 20 or alignment & (alignment - 1):
            raise self._error(f"general.alignment is {alignment!r}, expected a power of two")
        described = [self._description() for _ in range(tensor_count)]
        start = -(-self._at // alignment) * alignment
        tensors: dict[str, Tensor] = {}
        for description in described:
            tensor = self._tensor(*description, start, alignment)
            if tensor.name in tensors:
                raise self._error(f"tensor {tensor.name!r} is there twice")
            tensors[tensor.name] = tensor
        return Part(version, metadata, tensors, self._data)

    def _error(self, what: str) -> MinferError:
        return MinferError(f"{self._path}: {what}; the file is damaged or not a model: fetch it again")

    def _scalar(self, form: str, what: str) -> Any:
        try:
            (value,) = struct.unpack_from(form, self._data, self._at)
        except struct.error as error:
            raise self._error(f"ends at byte {self._size} inside {what} (byte {self._at})") from error
        self._at += struct.calcsize(form)
        return value

    def _count(self, count: int, least_bytes: int, what: str, most: int | None = None) -> int:
        room = (self._size - self._at) // least_bytes
        if most is not None and count > most:
            raise self._error(f"claims {count} {what}, at most {most} are expected")
        if count > room:
            raise self._error(f"claims {count} {what}, but {self._size - self._at} bytes hold at most {room}")
        return count

    def _string(self, what: str, longest: int | None = None) -> str:
        length = self._count(self._scalar("<Q", what), 1, f"bytes of {what}")
        if longest is not None and length > longest:
            raise self._error(f"{what} at byte {self._at} is {length} bytes long, at most {longest} are expected")
        text = self._data[self._at : self._at + length].decode("utf-8", "replace")
        self._at += length
        return text

    def _name(self, what: str) -> str:
        return self._string(what, _LONGEST_NAME)

    def _value(self, kind: int, key: str) -> Any:
        if kind == _STRING:
            return self._string(repr(key))
        if kind == _ARRAY:
            return self._array(key)
        if kind not in _SCALARS:
            raise self._error(f"metadata {key!r} has the unknown type {kind}")
        return self._scalar(_SCALARS[kind], repr(key))

    def _array(self, key: str) -> Any:
        kind = self._scalar("<I", f"the item type of {key!r}")
        count = self._scalar("<Q", f"the length of {key!r}")
        if kind == _STRING:
            return self._strings(self._count(count, 8, f"strings in {key!r}"), key)
        if kind not in _SCALARS:
            raise self._error(f"metadata {key!r} is an array of the unknown type {kind}")
        form = "<B" if kind == 7 else _SCALARS[kind]
        width = struct.calcsize(form)
        count = self._count(count, width, f"items in {key!r}")
        items = np.frombuffer(self._data, np.dtype(form), count, self._at)
        self._at += count * width
        return items != 0 if kind == 7 else items

    def _strings(self, count: int, key: str) -> StringArray:
        starts = array("q")
        at, length_at = self._at, struct.Struct("<Q").unpack_from
        try:
            for _ in range(count):
                starts.append(at)
                at += 8 + length_at(self._data, at)[0]
        except (struct.error, OverflowError) as error:
            raise self._error(f"string {len(starts) - 1} of {key!r} is past the end, byte {self._size}") from error
        if at > self._size:
            raise self._error(f"the last string of {key!r} ends at byte {at}, past the end, byte {self._size}")
        self._at = at
        return StringArray(self._data, np.frombuffer(starts, np.int64))

    def _description(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._name("a tensor name")
        dimensions = self._scalar("<I", f"the dimensions of {name!r}")
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise self._error(f"tensor {name!r} has {dimensions} dimensions, expected 1 to {_MOST_DIMENSIONS}")
        shape = tuple(self._scalar("<Q", f"the shape of {name!r}") for _ in range(dimensions))[::-1]
        return name, shape, self._scalar("<I", f"the type of {name!r}"), self._scalar("<Q", f"the offset of {name!r}")

    def _tensor(self, name: str, shape: tuple[int, ...], kind: int, offset: int, start: int, alignment: int) -> Tensor:
        quantisation = QUANTISATIONS.get(kind)
        if quantisation is None:
            raise MinferError(
                f"{self._path}: tensor {name!r} has type {kind}, expected one that the gguf package lists; update "
                f"that package, or give a file of another type"
            )
        if 0 in shape or shape[-1] % quantisation.block:
            raise self._error(
                f"tensor {name!r} has shape {list(shape)}, expected rows of whole {quantisation.name} blocks "
                f"of {quantisation.block}"
            )
        nbytes = quantisation.bytes_of(shape)
        if offset % alignment or start + offset + nbytes > self._size:
            raise self._error(
                f"tensor {name!r} needs bytes {start + offset} to {start + offset + nbytes} aligned to "
                f"{alignment}, but the file ends at byte {self._size}"
            )
        return Tensor(name, shape, quantisation, start + offset, nbytes, str(self._path), self._data)
