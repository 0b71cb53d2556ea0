"""The CUDA backend: the operations on one NVIDIA GPU, through CuPy, cuBLAS and the kernels of ``kernels/``."""

from __future__ import annotations

from .backend import CudaBackend
from .device import usable

__all__ = ["CudaBackend", "usable"]
