"""The types in which weights are stored: their names, their block sizes, and how their blocks become float32.

Sizes and the reference dequantisers are those of ggml's own Python package, ``gguf``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from .dequantise import UNPACK, unpack

Float32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Quantisation:
    """One ggml type. A block of ``block`` weights takes ``block_bytes`` bytes; blocks never cross a row."""

    id: int
    name: str
    """ggml's spelling: "q4_K", "iq2_xxs", "f16"."""
    block: int
    block_bytes: int

    def bytes_of(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor of this type whose rows (last axis) are whole blocks."""
        return prod(shape) // self.block * self.block_bytes


def _spelling(kind: GGMLQuantizationType) -> str:
    name = kind.name.lower()
    return name[:-2] + "_K" if name.endswith("_k") else name


QUANTISATIONS: dict[int, Quantisation] = {
    int(kind): Quantisation(int(kind), _spelling(kind), block, size)
    for kind, (block, size) in GGML_QUANT_SIZES.items()
}

_NOT_WEIGHTS = {"i8", "i16", "i32", "i64", "f64", "q8_1", "q8_K", "q1_0"}
"""Types for indices and activations, and those that the gguf package names but cannot dequantise."""


def is_weight(quantisation: Quantisation) -> bool:
    """Whether a tensor of this type can be used as weights."""
    return quantisation.name not in _NOT_WEIGHTS


def dequantise(raw: Bytes, quantisation: Quantisation, out: Float32 | None = None) -> Float32:
    """Float32 weights [..., k] of stored rows [..., bytes per row]; written into ``out`` (contiguous) where it is given."""
    if out is None:
        columns = raw.shape[-1] // quantisation.block_bytes * quantisation.block
        out = np.empty((*raw.shape[:-1], columns), np.float32)
    if quantisation.name in UNPACK:
        unpack(quantisation.name, raw.reshape(-1, quantisation.block_bytes), out.reshape(-1, quantisation.block))
    else:
        out[...] = dequantize(raw, GGMLQuantizationType(quantisation.id)).reshape(out.shape)
    return out
