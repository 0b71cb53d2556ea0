"""cuBLAS through its C interface: CuPy's own wrapper refuses to run while a graph is captured.

Functions: https://docs.nvidia.com/cuda/cublas/
"""

from __future__ import annotations

import ctypes
from typing import Any

from ...kernels import KernelError
from .arrays import DeviceArray
from .device import Device

_TRANSPOSED, _PLAIN = 1, 0  # CUBLAS_OP_T, CUBLAS_OP_N
_TYPES = {"f16": 2, "f32": 0}  # CUDA_R_16F, CUDA_R_32F
_COMPUTE_F32, _DEFAULT = 68, -1  # CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT
_WORKSPACE_BYTES = 32 << 20
"""What cuBLAS itself takes on Hopper; given by us, so that no product allocates while a graph is captured."""


class Cublas:
    """One handle on the device's stream."""

    def __init__(self, device: Device) -> None:
        """Raises KernelError where the library cannot be loaded or started."""
        self._library = _load()
        self._handle = ctypes.c_void_p()
        self._workspace: Any = device.allocate(_WORKSPACE_BYTES)
        workspace = ctypes.c_void_p(self._workspace.pointer)
        self._check(self._library.cublasCreate_v2(ctypes.byref(self._handle)), "cublasCreate")
        self._check(self._library.cublasSetStream_v2(self._handle, device.stream_handle), "cublasSetStream")
        size = ctypes.c_size_t(_WORKSPACE_BYTES)
        self._check(self._library.cublasSetWorkspace_v2(self._handle, workspace, size), "cublasSetWorkspace")
        self._gemm = self._library.cublasGemmEx
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._gemm.argtypes = [
            pointer, number, number, number, number, number, pointer, pointer, number, number, pointer, number, number,
            pointer, pointer, number, number, number, number,
        ]  # fmt: skip
        self._alpha, self._beta = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self._alpha_pointer, self._beta_pointer = ctypes.addressof(self._alpha), ctypes.addressof(self._beta)

    @property
    def nbytes(self) -> int:
        """Bytes of workspace."""
        return _WORKSPACE_BYTES

    def product(self, weights: int, n: int, x: DeviceArray, out: DeviceArray) -> None:
        """out [m, n] = x [m, k] times the transpose of the f16 matrix [n, k] at ``weights``, accumulated in f32."""
        m, k = x.shape
        self._alpha.value = x.scale
        # Row-major out [m, n] is column-major [n, m]: cuBLAS sees out = w^T x with everything k-major.
        status = self._gemm(
            self._handle, _TRANSPOSED, _PLAIN, n, m, k, self._alpha_pointer, weights, _TYPES["f16"], k,
            x.pointer, _TYPES["f16"], k, self._beta_pointer, out.pointer, _TYPES[out.dtype], n, _COMPUTE_F32, _DEFAULT,
        )  # fmt: skip
        self._check(status, f"cublasGemmEx of [{m}, {k}] by [{n}, {k}]")

    @staticmethod
    def _check(status: int, what: str) -> None:
        if status:
            raise KernelError(f"{what} returned {status}, expected 0; cuBLAS and driver must be of one CUDA version")


def _load() -> ctypes.CDLL:
    try:
        # Finds and loads the library wherever its wheel or toolkit is; after that its bare name resolves.
        from cupy_backends.cuda.libs import cublas  # noqa: F401
    except ImportError as error:
        raise KernelError(f"cuBLAS cannot be loaded ({error}); pip install nvidia-cublas, or use backend numpy") from error
    for name in ("libcublas.so.13", "libcublas.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise KernelError("cuBLAS: no libcublas.so.13 or .12 among the loaded libraries; pip install nvidia-cublas")
