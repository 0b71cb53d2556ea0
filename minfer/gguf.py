"""Opens GGUF models, one file or all parts of a split one: memory-mapped, and lazy where a file is large."""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import MinferError
from .gguf_reader import Reader
from .mapped import StringArray, Tensor

__all__ = ["GgufFile", "StringArray", "Tensor", "open_gguf"]

_MOST_PARTS = 9999
_PART = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")


@dataclass(frozen=True)
class GgufFile:
    """An opened model: one file, or all parts of a split one."""

    path: Path
    parts: tuple[Path, ...]
    version: int
    metadata: Mapping[str, Any]
    """Scalars and strings as Python values; arrays as read-only NumPy views or ``StringArray``."""
    tensors: Mapping[str, Tensor]
    nbytes: int
    _maps: tuple[mmap.mmap, ...] = field(repr=False, compare=False)
    _digest: list[str] = field(default_factory=list, repr=False, compare=False)

    def digest(self) -> str:
        """sha256 of the bytes of all parts in order, hexadecimal; computed once."""
        if not self._digest:
            total = hashlib.sha256()
            for part in self.parts:
                with part.open("rb") as file:
                    while block := file.read(1 << 20):
                        total.update(block)
            self._digest.append(total.hexdigest())
        return self._digest[0]

    def check_whole(self) -> None:
        """Raise MinferError where a file is shorter than when it was opened: reading what is gone would kill the process.

        It costs 1 us a file, so it is asked before each pass. A file that is cut during a pass still ends the process
        (SIGBUS): nothing short of a copy in memory prevents that.
        """
        for path, data in zip(self.parts, self._maps, strict=True):
            if data.size() < len(data):
                raise MinferError(
                    f"{path}: was cut from {len(data)} to {data.size()} bytes while it was in use; "
                    f"fetch it again, and load it anew"
                )


def open_gguf(path: str | Path) -> GgufFile:
    """Open a GGUF file; any part of a split model opens the whole. Raises MinferError."""
    path = Path(path)
    first, parts = _parts_of(path)
    opened = [Reader(part).read() for part in parts]
    metadata = opened[0].metadata
    tensors: dict[str, Tensor] = {}
    for part in opened:
        for name, tensor in part.tensors.items():
            if name in tensors:
                raise MinferError(f"{tensor.file}: tensor {name!r} is also in {tensors[name].file}; fetch the parts again")
            tensors[name] = tensor
    _check_split(first, metadata, len(parts), len(tensors))
    maps = tuple(part.data for part in opened)
    return GgufFile(path, tuple(parts), opened[0].version, metadata, tensors, sum(len(data) for data in maps), maps)


def _parts_of(path: Path) -> tuple[Path, list[Path]]:
    match = _PART.match(path.name)
    if match is None:
        return path, [path]
    count = int(match["count"])
    if not 1 <= int(match["number"]) <= count <= _MOST_PARTS:
        raise MinferError(f"{path}: its name says part {match['number']} of {match['count']}; rename it as it was published")
    parts = [path.with_name(f"{match['stem']}-{number:05d}-of-{count:05d}.gguf") for number in range(1, count + 1)]
    for part in parts:
        if not part.is_file():
            raise MinferError(f"{part}: part of a model split in {count} is not there; put all parts in one folder")
    return parts[0], parts


def _check_split(path: Path, metadata: Mapping[str, Any], parts: int, tensors: int) -> None:
    for key, seen in (("split.count", parts), ("split.tensors.count", tensors)):
        declared = metadata.get(key, seen)
        # Writers put 0 or 1 into a file that is not split; one that says 2 has lost the name of its part.
        alone = parts == 1 and (key == "split.tensors.count" or declared == 0)
        if not isinstance(declared, int) or (declared != seen and not alone):
            raise MinferError(
                f"{path}: metadata {key} is {repr(declared)[:60]}, expected {seen} as its {parts} files say; "
                f"name all parts as published, in one folder, or fetch them again"
            )
