"""Arrays to and from the device, random quantised blocks, and how far a result is from its reference."""

from __future__ import annotations

import gguf
import numpy as np

from minfer.backends.cuda.arrays import DeviceArray
from minfer.backends.cuda.linear import as_laid_out
from minfer.quantisation import QUANTISATIONS

BY_NAME = {quantisation.name: quantisation for quantisation in QUANTISATIONS.values()}
LENGTHS = (1, 7, 511, 512, 3325)
"""Tokens: one, ragged, around a tile's end, the two prompts that are published."""
_DTYPES = {"f16": np.float16, "f32": np.float32, "i32": np.int32, "u8": np.uint8}
_F16_FIELDS = {
    "q4_0": (0,), "q4_1": (0, 2), "q5_0": (0,), "q5_1": (0, 2), "q8_0": (0,), "q2_K": (80, 82), "q3_K": (108,),
    "q4_K": (0, 2), "q5_K": (0, 2), "q6_K": (208,), "iq4_nl": (0,), "iq4_xs": (0,),
}  # fmt: skip
"""Where a block keeps its f16 scales: random bytes there could be infinite."""


class Gpu:
    def __init__(self, backend):
        self.backend = backend
        self.device = backend.device
        self._alive = []

    def put(self, host: np.ndarray) -> DeviceArray:
        """A device copy."""
        dtype = next(name for name, kind in _DTYPES.items() if host.dtype == kind)
        memory = self.device.allocate(host.nbytes)
        self._alive.append(memory)
        self.device.upload(memory.pointer, np.ascontiguousarray(host))
        self.device.stream.synchronize()
        return DeviceArray(memory.pointer, host.shape, dtype)

    def poisoned(self, shape: tuple[int, ...], dtype: str) -> DeviceArray:
        """Memory of NaN."""
        return self.put(np.full(shape, np.nan, _DTYPES[dtype]))

    def get(self, array: DeviceArray) -> np.ndarray:
        host = np.empty(array.shape, _DTYPES[array.dtype])
        self.device.download(host, array.pointer)
        self.device.stream.synchronize()
        return host


def stored_blocks(kind: str, rows: int, k: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random rows [rows, bytes] of a type as a file holds them, and the float32 weights [rows, k] that they mean."""
    quantisation = BY_NAME[kind]
    if kind in ("f32", "f16", "bf16"):
        weights = random.standard_normal((rows, k)).astype(np.float32)
        raw = gguf.quantize(weights, gguf.GGMLQuantizationType(quantisation.id)).view(np.uint8).reshape(rows, -1)
    else:
        raw = random.integers(0, 256, (rows, k // quantisation.block, quantisation.block_bytes), np.uint8)
        for at in _F16_FIELDS[kind]:
            most = 2e-4 if kind.endswith(("K", "xs")) else 5e-2
            scale = random.uniform(-most, most, raw.shape[:2])
            raw[..., at : at + 2] = scale.astype(np.float16)[..., None].view(np.uint8)
        raw = raw.reshape(rows, -1)
    dense = gguf.dequantize(raw, gguf.GGMLQuantizationType(quantisation.id)).astype(np.float32).reshape(rows, k)
    assert np.isfinite(dense).all()
    return raw, dense


def random_blocks(kind: str, rows: int, k: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As ``stored_blocks``, the rows as they lie on the device."""
    raw, dense = stored_blocks(kind, rows, k, random)
    return as_laid_out(kind, raw), dense


def distance(seen: np.ndarray, expected: np.ndarray) -> float:
    """||seen - expected|| / ||expected|| in float64; not a number where ``seen`` holds one."""
    seen, expected = np.asarray(seen, np.float64), np.asarray(expected, np.float64)
    return float(np.linalg.norm(seen - expected) / np.linalg.norm(expected))
