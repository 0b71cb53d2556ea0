"""Products of activations with quantised matrices: which way each one goes, and the f16 way through cuBLAS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...gguf import Tensor
from ...kernels import KernelError
from . import launch
from .arrays import DeviceArray
from .cublas import Cublas
from .device import Device, DeviceMemory


@dataclass(slots=True, eq=False)
class DeviceMatrix:
    """A weight [n, k], or [experts, n, k], on the device."""

    memory: Any
    pointer: int
    kind: str
    """The type in which it lies there: the file's, or f16 where no kernel decodes that."""
    nbytes: int
    wide: bool
    """Its products are logits, kept in f32."""
    dense: DeviceMemory | None = None
    """An f16 copy, where one is kept."""


_ALIGNED = {"q6_K": (210, 224)}
"""Bytes of a block in the file and on the device, where kernels want blocks to begin at a multiple of 16."""


def as_laid_out(kind: str, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Stored rows u8 [.., bytes] of ``kind`` as kernels/blocks.cuh reads them: contiguous, blocks aligned."""
    if kind not in _ALIGNED:
        return np.ascontiguousarray(raw)
    stored, aligned = _ALIGNED[kind]
    blocks = raw.reshape(*raw.shape[:-1], raw.shape[-1] // stored, stored)
    out = np.zeros((*blocks.shape[:-1], aligned), np.uint8)
    out[..., :stored] = blocks
    return out.reshape(*raw.shape[:-1], -1)


def upload_matrix(device: Device, tensor: Tensor) -> DeviceMatrix:
    """Bring a weight to the device as it is stored, blocks aligned; types that no kernel decodes are made f16 here, once."""
    if tensor.shape[-1] % 8:
        raise KernelError(
            f"tensor {tensor.name}: rows of {tensor.shape[-1]} weights, expected a multiple of 8; use backend numpy"
        )
    kind = tensor.type.name
    if kind in launch.DECODED:
        host = as_laid_out(kind, tensor.raw)
    else:
        kind, host = "f16", np.ascontiguousarray(tensor.dequantise().astype(np.float16))
    memory = device.allocate(host.nbytes)
    device.upload(memory.pointer, host)
    wide = tensor.name in ("output.weight", "token_embd.weight") or "gate_inp" in tensor.name
    return DeviceMatrix(memory, memory.pointer, kind, host.nbytes, wide)


def keep_dense(device: Device, tensor: Tensor, matrix: DeviceMatrix) -> None:
    """Give a layer's matrix the f16 copy that the f16 way reads; heads and experts stay as they are stored."""
    if matrix.wide or len(tensor.shape) != 2 or matrix.kind == "f16":
        return
    n, k = tensor.shape
    matrix.dense = device.allocate(2 * n * k)
    launch.dequantise(device, matrix.kind, matrix.pointer, DeviceArray(matrix.dense.pointer, (n, k), "f16"))


class F16Products:
    """Weights made f16 in a scratch, then a cuBLAS product with f32 accumulation: the default for many rows, any type.

    Tried on an H200: making the next weights f16 on a second stream beside a product (17.3 ms at 512 tokens against 17.8 in
    turn, for 258 MiB more of scratch), and queries beside keys or gate beside up (no gain): cuBLAS's kernels leave no
    multiprocessor idle at these shapes, so what runs beside them takes its time from them. In slices of rows that stay in
    the L2 cache it is slower too: 148 to 166 us against 145 for [18944, 3584] at 512 tokens.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._cublas = Cublas(device)
        self._scratch: Any = None

    @property
    def scratch_bytes(self) -> int:
        """Bytes for a weight made f16."""
        return 0 if self._scratch is None else int(self._scratch.nbytes)

    @property
    def workspace_bytes(self) -> int:
        """Bytes that cuBLAS was given."""
        return self._cublas.nbytes

    @property
    def pointer(self) -> int:
        """Address of the scratch, 0 where there is none yet."""
        return 0 if self._scratch is None else self._scratch.pointer

    def reserve(self, weights: int) -> None:
        """Make the scratch hold a matrix of so many weights."""
        if self._scratch is None or self._scratch.nbytes < 2 * weights:
            self._scratch = None
            self._scratch = self._device.allocate(2 * weights)

    def __call__(self, kind: str, weights: int, n: int, x: DeviceArray, out: DeviceArray) -> None:
        """out [m, n] = x [m, k] times the transpose of the matrix of ``kind`` at ``weights``."""
        m, k = x.shape
        launch.expect("a matrix product's input", x, "f16", (m, None), 8)
        launch.expect("a matrix product's result", out, "f16 f32", (m, n))
        if kind == "f16":
            dense = weights
        else:
            self.reserve(n * k)
            dense = self.pointer
            launch.dequantise(self._device, kind, weights, DeviceArray(dense, (n, k), "f16"))
        self._cublas.product(dense, n, x, out)
