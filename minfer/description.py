"""What a model file is, in the words and sums that people compare models by: its type, its mix, its work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from gguf.constants import LlamaFileType

from .gguf import GgufFile
from .operations import Operation

_SIZED = {"S": "Small", "M": "Medium", "L": "Large", "XL": "Extra Large", "XS": "Extra Small"}


@dataclass(frozen=True, slots=True)
class MixEntry:
    """All tensors of one quantisation."""

    quantisation: str
    tensors: int
    parameters: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class ClassWork:
    """What one kernel class does in a prefill."""

    kernel_class: str
    operations: int
    macs: int
    bytes: int


def parameters(file: GgufFile) -> int:
    """Number of weights of all tensors."""
    return sum(prod(tensor.shape) for tensor in file.tensors.values())


def weight_bytes(file: GgufFile) -> int:
    """Bytes of all tensors, without metadata and padding."""
    return sum(tensor.nbytes for tensor in file.tensors.values())


def quantisation_mix(file: GgufFile) -> list[MixEntry]:
    """The types of the tensors, that with the most bytes first."""
    entries: dict[str, MixEntry] = {}
    for tensor in file.tensors.values():
        name = tensor.type.name
        seen = entries.get(name, MixEntry(name, 0, 0, 0))
        entries[name] = MixEntry(
            name, seen.tensors + 1, seen.parameters + prod(tensor.shape), seen.nbytes + tensor.nbytes
        )
    return sorted(entries.values(), key=lambda entry: -entry.nbytes)


def work_by_class(operations: Iterable[Operation]) -> list[ClassWork]:
    """MACs and least bytes of each kernel class, the most MACs first."""
    works: dict[str, ClassWork] = {}
    for one in operations:
        seen = works.get(one.kernel_class, ClassWork(one.kernel_class, 0, 0, 0))
        works[one.kernel_class] = ClassWork(
            one.kernel_class, seen.operations + 1, seen.macs + one.macs, seen.bytes + one.bytes
        )
    return sorted(works.values(), key=lambda work: (-work.macs, -work.bytes))


def model_type(file: GgufFile) -> str:
    """"qwen2 7B Q4_K - Medium": architecture, size and file type, as llama.cpp writes them."""
    label = file.metadata.get("general.size_label")
    size = label if isinstance(label, str) and label else _rounded(parameters(file))
    return f"{file.metadata.get('general.architecture', '?')} {size} {file_type(file)}"


def file_type(file: GgufFile) -> str:
    """llama.cpp's name of the mix; the most used type where the file does not say."""
    try:
        name = LlamaFileType(file.metadata.get("general.file_type", -1)).name
    except ValueError:
        return quantisation_mix(file)[0].quantisation.upper() if file.tensors else "no weights"
    if name.startswith("ALL_"):
        return f"all {name.removeprefix('ALL_')}"
    name = name.removeprefix("MOSTLY_")
    stem, _, last = name.rpartition("_")
    return f"{stem} - {_SIZED[last]}" if last in _SIZED and stem.endswith("_K") else name


def _rounded(count: int) -> str:
    if count < 0.95e9:
        return f"{count / 1e6:.0f}M"
    billions = count / 1e9
    return f"{billions:.0f}B" if abs(billions - round(billions)) < 0.25 * (billions > 4) else f"{billions:.1f}B"
