"""CUPTI's buffers of records, read where they lie.

cupti-python makes an object of every record: 70 us a kernel and 10 a call on two cores, which is seconds a window. Here
CUPTI's own C interface fills buffers of this process; the layouts of their records are cupti-python's.
https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html
"""

from __future__ import annotations

import ctypes as c
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cupti_records import (
    DRIVER,
    EXTERNAL_CORRELATION,
    FIELDS,
    KERNEL,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    RUNTIME,
    Records,
)

BUFFER_BYTES = 8 << 20
_NO_MORE = 12  # CUPTI_ERROR_MAX_LIMIT_REACHED: the buffer holds no further record
_LAYOUTS = {
    KERNEL: r"activity_kernel(\d+)_dtype",
    DRIVER: r"activity_api(\d*)_dtype",
    RUNTIME: r"activity_api(\d*)_dtype",
    EXTERNAL_CORRELATION: r"activity_external_correlation(\d*)_dtype",
    MEMCPY: r"activity_memcpy(\d+)_dtype",
    MEMCPY2: r"activity_memcpy_pto_p(\d+)_dtype",
    MEMSET: r"activity_memset(\d+)_dtype",
}
"""What cupti-python calls the layout of each kind; the highest number is the newest."""
_REQUESTED = c.CFUNCTYPE(None, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t), c.POINTER(c.c_size_t))
_COMPLETED = c.CFUNCTYPE(None, c.c_void_p, c.c_uint32, c.c_void_p, c.c_size_t, c.c_size_t)

Layouts = Mapping[int, Any]
"""NumPy's description of a record, by kind."""
Filled = Callable[[bytes, list[int]], None]
"""Takes a buffer's bytes and where in it its records begin."""


def layouts_of(module: Any) -> Layouts | None:
    """The layouts that a ``cupti`` module knows; None where one is missing or lacks a field that is kept."""
    found: dict[int, Any] = {}
    for kind, pattern in _LAYOUTS.items():
        named = [(int(match[1] or 0), match[0]) for match in (re.fullmatch(pattern, name) for name in dir(module)) if match]
        layout = getattr(module, max(named)[1]) if named else None
        if layout is None or not {"kind", *FIELDS[kind]} <= set(layout.names or ()):
            return None
        found[kind] = layout
    return found


def read_buffer(records: Records, raw: bytes, starts: list[int], layouts: Layouts) -> None:
    """Add a buffer's records. Names of kernels are addresses in it, so their modules must still be loaded."""
    by_kind: dict[int, list[int]] = {}
    for start in starts:
        by_kind.setdefault(int.from_bytes(raw[start : start + 4], sys.byteorder), []).append(start)
    for kind, places in by_kind.items():
        layout = layouts.get(kind)
        if layout is None:
            continue
        # A CUPTI older than the layout ends its last record sooner.
        padded = raw + bytes(layout.itemsize)
        rows: NDArray[Any] = np.frombuffer(b"".join(padded[place : place + layout.itemsize] for place in places), layout)
        columns: list[list[Any]] = [rows[name].tolist() for name in FIELDS[kind]]
        if kind == KERNEL:
            at = FIELDS[kind].index("name")
            names = {address: (c.c_char_p(address).value or b"?").decode() for address in set(columns[at])}
            columns[at] = [names[address] for address in columns[at]]
        for row in zip(*columns, strict=True):
            records.add(kind, row)


class Buffers:
    """Registers with CUPTI, once a process, and hands on what it filled."""

    def __init__(self, library: Any, next_record: Any) -> None:
        self._library, self._next = library, next_record
        self._held: dict[int, Any] = {}
        self._free: list[int] = []
        self._filled: Filled = lambda raw, starts: None
        self.failed = 0
        """CUPTI's status where a buffer could not be walked to its end; nobody may believe the records then."""
        # CUPTI holds their addresses for as long as the process lives.
        self._callbacks = _REQUESTED(self._request), _COMPLETED(self._complete)

    def register(self, filled: Filled) -> bool:
        """False where CUPTI refuses."""
        self._filled = filled
        return bool(self._library.cuptiActivityRegisterCallbacks(*self._callbacks) == 0)

    def _request(self, buffer: Any, size: Any, most: Any) -> None:
        if not self._free:
            memory = np.empty(BUFFER_BYTES // 8, np.uint64)
            self._held[memory.ctypes.data] = memory
            self._free.append(memory.ctypes.data)
        buffer[0], size[0], most[0] = self._free.pop(), BUFFER_BYTES, 0

    def _complete(self, context: int | None, stream: int, buffer: int, size: int, valid: int) -> None:
        starts, record = [], c.c_void_p()
        while (status := self._next(c.c_void_p(buffer), c.c_size_t(valid), c.byref(record))) == 0:
            starts.append((record.value or 0) - buffer)
        if status != _NO_MORE:
            self.failed = status
        raw = c.string_at(buffer, valid)
        self._free.append(buffer)
        self._filled(raw, starts)


def loaded_library(maps: Path = Path("/proc/self/maps")) -> Buffers | None:
    """On the CUPTI that this process has loaded; None where it has none."""
    try:
        found = re.search(r"\S*/libcupti\.so\S*", maps.read_text(encoding="utf-8"))
        # PyDLL: walking a buffer takes no time and calls nobody.
        return Buffers(c.CDLL(found[0]), c.PyDLL(found[0]).cuptiActivityGetNextRecord) if found else None
    except (OSError, AttributeError):
        return None
