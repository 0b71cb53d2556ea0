"""NVIDIA's run-time compiler, called through its C interface: CUDA C++ text in, a cubin for one target out.

Functions: https://docs.nvidia.com/cuda/nvrtc/index.html
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from . import KernelError

_INSTALL = "install it with: pip install nvidia-cuda-nvrtc"
_ON_ALL_CORES = "--split-compile=0"
"""Optimises a source's kernels on all cores. The machine code is the same as on one: no cubin's key holds this option."""


@cache
def _library() -> ctypes.CDLL:
    """The newest NVRTC of the installed ``nvidia`` wheels, else the one on the loader's path."""
    found = [
        path
        for folder in dict.fromkeys(sys.path)
        for path in sorted(Path(folder or ".").glob("nvidia/*/lib/libnvrtc.so.1[0-9]"), reverse=True)
    ]
    failures = []
    for name in [*map(str, found), "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            # NVRTC opens its builtins by bare name: loaded beforehand, they are found outside the loader's path too.
            for builtins in Path(name).parent.glob("libnvrtc-builtins.so*") if "/" in name else ():
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(name)
        except OSError as error:
            failures.append(str(error))
    raise KernelError(f"NVRTC, CUDA's run-time compiler, cannot be loaded ({failures[0]}); {_INSTALL}")


@cache
def version() -> str:
    """ "13.0", the version of the compiler, not of the driver."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    return f"{major.value}.{minor.value}"


def compile_cubin(name: str, source: str, headers: Mapping[str, str], options: Sequence[str]) -> tuple[bytes, str]:
    """The cubin of ``source`` and the compiler's log. ``headers``: what the source may include, text by name.

    Raises KernelError with the compiler's first error.
    """
    library = _library()
    how = [*options, *_on_all_cores()]
    program = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    names = (ctypes.c_char_p * len(headers))(*(header.encode() for header in headers))
    _check(
        library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), len(headers), texts, names),
        "nvrtcCreateProgram",
    )
    try:
        flags = (ctypes.c_char_p * len(how))(*(option.encode() for option in how))
        status = library.nvrtcCompileProgram(program, len(how), flags)
        log = _text(program, "ProgramLog")
        if status:
            errors = [line for line in log.splitlines() if "error" in line] or [log.strip() or f"NVRTC status {status}"]
            raise KernelError(f"{name}: NVRTC {version()} with {' '.join(options)}: {errors[0]}")
        return _bytes(program, "CUBIN"), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _on_all_cores() -> tuple[str, ...]:
    """CUDA 12's NVRTC may not know the option."""
    return (_ON_ALL_CORES,) if int(version().split(".")[0]) >= 13 else ()


def _bytes(program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(getattr(_library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)), f"nvrtcGet{what}Size")
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(_library(), f"nvrtcGet{what}")(program, buffer), f"nvrtcGet{what}")
    return buffer.raw


def _text(program: ctypes.c_void_p, what: str) -> str:
    return _bytes(program, what).rstrip(b"\0").decode(errors="replace")


def _check(status: int, call: str) -> None:
    if status:
        describe = _library().nvrtcGetErrorString
        describe.restype = ctypes.c_char_p
        raise KernelError(f"{call} failed: {describe(status).decode()}; {_INSTALL}")
