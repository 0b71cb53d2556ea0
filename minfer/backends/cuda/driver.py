"""Kernels on the device: cubins loaded and launched through the CUDA driver's C interface.

A launch packs its arguments once and makes one foreign call, about a third of what CuPy's own launch costs from Python; at
short prompts the host would otherwise be late. Functions: https://docs.nvidia.com/cuda/cuda-driver-api/
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

from ...kernels import KernelError

_POINTERS, _SIZE, _END = 1, 2, 0  # CU_LAUNCH_PARAM_*
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_TOO_OLD = {
    35: "driver is older than the CUDA that compiled the kernels",
    209: "cubin was made for another GPU",
    222: "driver is too old",
}
_WITHOUT_FREE_SHARED = 48 * 1024
"""Bytes of shared memory that a block gets without asking."""


@cache
def library() -> ctypes.CDLL:
    """The driver's own library. Raises KernelError where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise KernelError(f"no NVIDIA driver is installed ({error}); install one, or run with backend numpy") from error


def check(status: int, what: str) -> None:
    """Raise KernelError, with the driver's words, unless ``status`` is success."""
    if status:
        text = ctypes.c_char_p()
        library().cuGetErrorString(status, ctypes.byref(text))
        said = _TOO_OLD.get(status) or (text.value or b"unknown error").decode()
        advice = (
            "update the NVIDIA driver, or run with backend numpy"
            if status in _TOO_OLD
            else "see the message above it, if any"
        )
        raise KernelError(f"{what}: CUDA error {status}, {said}; {advice}")


def driver_version() -> tuple[int, int]:
    """Newest CUDA that the driver supports: (13, 0)."""
    version = ctypes.c_int()
    check(library().cuDriverGetVersion(ctypes.byref(version)), "driver version")
    return version.value // 1000, version.value % 1000 // 10


def _first_offset(handle: int) -> int:
    """Bytes before a kernel's first argument: the compiler aligns a tensor map in its own memory, not in ours."""
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    status = library().cuFuncGetParamInfo(ctypes.c_void_p(handle), 0, ctypes.byref(offset), ctypes.byref(size))
    check(status, "offset of a kernel's first argument")
    return offset.value


class Kernel:
    """One kernel with a fixed argument layout: ``struct`` codes in order, P pointer, i int, q long long, f float, 128s a
    tensor map."""

    def __init__(self, name: str, handle: int, layout: str, threads: int, shared: int) -> None:
        self.name = name
        self._layout = struct.Struct(f"@{_first_offset(handle)}x{layout}")
        self._buffer = ctypes.create_string_buffer(self._layout.size)
        self._size = ctypes.c_size_t(self._layout.size)
        self._extra = (ctypes.c_void_p * 5)(
            _POINTERS, ctypes.addressof(self._buffer), _SIZE, ctypes.addressof(self._size), _END
        )
        self._threads, self._shared = ctypes.c_uint(threads), ctypes.c_uint(shared)
        self._handle = ctypes.c_void_p(handle)
        self._one = ctypes.c_uint(1)
        self._launch = library().cuLaunchKernel

    def __call__(self, stream: ctypes.c_void_p, grid: tuple[int, int, int], *arguments: Any) -> None:
        """Queue the kernel on ``stream``. Raises KernelError where the launch itself is refused."""
        self._layout.pack_into(self._buffer, 0, *arguments)
        status = self._launch(
            self._handle,
            ctypes.c_uint(grid[0]),
            ctypes.c_uint(grid[1]),
            ctypes.c_uint(grid[2]),
            self._threads,
            self._one,
            self._one,
            self._shared,
            stream,
            None,
            self._extra,
        )
        if status:
            check(status, f"launch of {self.name} with grid {grid}")


class Module:
    """A loaded cubin; the context of the current device must exist."""

    def __init__(self, name: str, code: bytes) -> None:
        self.name = name
        self._handle = ctypes.c_void_p()
        self._shared: dict[str, int] = {}
        check(library().cuModuleLoadData(ctypes.byref(self._handle), code), f"loading kernels {name}")

    def kernel(self, name: str, layout: str, threads: int, shared: int = 0) -> Kernel:
        """The kernel called ``name`` in the source, launched with ``threads`` a block and ``shared`` dynamic bytes."""
        handle = ctypes.c_void_p()
        check(
            library().cuModuleGetFunction(ctypes.byref(handle), self._handle, name.encode()), f"{self.name}: kernel {name}"
        )
        # One limit a kernel, whatever it was asked for before: only ever raised.
        if shared > self._shared.get(name, _WITHOUT_FREE_SHARED):
            self._shared[name] = shared
            check(
                library().cuFuncSetAttribute(handle, _DYNAMIC_SHARED, shared), f"{name}: {shared} bytes of shared memory"
            )
        assert handle.value is not None
        return Kernel(name, handle.value, layout, threads, shared)
