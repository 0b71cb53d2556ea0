"""Products of activations with quantised matrices: which way each one goes, and the f16 way through cuBLAS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...gguf import Tensor
from ...kernels import KernelError
from . import launch
from .arrays import DeviceArray
from .device import Device

_TRANSPOSED, _PLAIN = 1, 0  # CUBLAS_OP_T, CUBLAS_OP_N
_F16, _F32 = 2, 0  # CUDA_R_16F, CUDA_R_32F
_COMPUTE_F32, _DEFAULT = 68, -1  # CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT


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


def upload_matrix(device: Device, tensor: Tensor) -> DeviceMatrix:
    """Bring a weight to the device as it is stored; types that no kernel decodes are made f16 here, once."""
    if tensor.shape[-1] % 8:
        raise KernelError(
            f"tensor {tensor.name}: rows of {tensor.shape[-1]} weights, expected a multiple of 8; use backend numpy"
        )
    kind = tensor.type.name
    if kind in launch.DECODED:
        host = np.ascontiguousarray(tensor.raw)
    else:
        kind, host = "f16", np.ascontiguousarray(tensor.dequantise().astype(np.float16))
    memory = device.allocate(host.nbytes)
    device.upload(int(memory.data.ptr), host)
    wide = tensor.name in ("output.weight", "token_embd.weight") or "gate_inp" in tensor.name
    return DeviceMatrix(memory, int(memory.data.ptr), kind, host.nbytes, wide)


class F16Products:
    """Weights made f16 in a scratch, then a cuBLAS product with f32 accumulation: the default for many rows, any type."""

    def __init__(self, device: Device) -> None:
        from cupy_backends.cuda.libs import cublas

        self._device = device
        self._cublas = cublas
        self._handle = device.cupy.cuda.device.get_cublas_handle()
        self._scratch: Any = None
        self._alpha, self._beta = np.ones(1, np.float32), np.zeros(1, np.float32)
        self._alpha_pointer, self._beta_pointer = self._alpha.ctypes.data, self._beta.ctypes.data

    @property
    def nbytes(self) -> int:
        """Bytes of scratch held."""
        return 0 if self._scratch is None else int(self._scratch.nbytes)

    @property
    def pointer(self) -> int:
        """Address of the scratch, 0 where there is none yet."""
        return 0 if self._scratch is None else int(self._scratch.data.ptr)

    def reserve(self, weights: int) -> None:
        """Make the scratch hold a matrix of so many weights."""
        if self.nbytes < 2 * weights:
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
        self._alpha[0] = x.scale
        # Row-major out [m, n] is column-major [n, m]: cuBLAS sees out = w^T x with everything k-major.
        self._cublas.gemmEx(
            self._handle,
            _TRANSPOSED,
            _PLAIN,
            n,
            m,
            k,
            self._alpha_pointer,
            dense,
            _F16,
            k,
            x.pointer,
            _F16,
            k,
            self._beta_pointer,
            out.pointer,
            _F16 if out.dtype == "f16" else _F32,
            n,
            _COMPUTE_F32,
            _DEFAULT,
        )
