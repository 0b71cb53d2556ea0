"""A library of CPU kernels in a process of its own: in an emulator of its CPU where that is not this one.

It stands for the ``ctypes.CDLL`` that ``CpuKernels`` expects. Arrays are copied there and back: their addresses are looked
up among those that the launchers asked for.
"""

from __future__ import annotations

import ctypes
import struct
import subprocess

import numpy as np

_PLAIN = {ctypes.c_int: "i", ctypes.c_long: "i", ctypes.c_float: "f", ctypes.c_void_p: "p"}


class LibraryApart:
    def __init__(self, command: list[str]) -> None:
        """``command`` runs play.c over a library."""
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=-1
        )
        self._arrays: dict[int, np.ndarray] = {}

    def address_of(self, array: np.ndarray) -> int:
        """Where an array lies; it goes along with the next call."""
        self._arrays[array.ctypes.data] = array
        return array.ctypes.data

    def __getattr__(self, name: str) -> _Kernel:
        return _Kernel(self, name)

    def close(self) -> None:
        self._process.communicate()

    def call(self, name: str, kinds: str, values: tuple) -> int:
        arrays = [self._arrays[value] for kind, value in zip(kinds, values, strict=True) if kind == "p"]
        if arrays:
            self._arrays.clear()
        message = [name.encode().ljust(32, b"\0"), struct.pack("<q", len(values))]
        for kind, value in zip(kinds, values, strict=True):
            if kind == "p":
                content = next(array for array in arrays if array.ctypes.data == value)
                message += [b"p", struct.pack("<q", content.nbytes), content.tobytes()]
            else:
                message += [kind.encode(), struct.pack("<d" if kind == "f" else "<q", value)]
        try:
            self._process.stdin.write(b"".join(message))
            self._process.stdin.flush()
            (result,) = struct.unpack("<q", self._read(8))
            for array in arrays:
                np.copyto(array, np.frombuffer(self._read(array.nbytes), array.dtype).reshape(array.shape))
        except (BrokenPipeError, EOFError):
            told = self._process.stderr.read().decode(errors="replace")
            raise AssertionError(f"{name}{values}: its process ended ({self._process.wait()}): {told}") from None
        return result

    def _read(self, count: int) -> bytes:
        content = self._process.stdout.read(count)
        if len(content) < count:
            raise EOFError
        return content


class _Kernel:
    argtypes: tuple = ()
    restype: type | None = None

    def __init__(self, library: LibraryApart, name: str) -> None:
        self._library, self._name = library, name

    def __call__(self, *values):
        return self._library.call(self._name, "".join(_PLAIN[kind] for kind in self.argtypes), values)
