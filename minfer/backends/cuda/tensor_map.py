"""Tensor maps: how the copy engine of Hopper and later finds a box of a matrix.

Function: cuTensorMapEncodeTiled, https://docs.nvidia.com/cuda/cuda-driver-api/
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from .driver import check, library

NBYTES = 128
_U8, _F16, _NO_INTERLEAVE, _PROMOTE_256, _ZEROS = 0, 6, 0, 3, 0  # CU_TENSOR_MAP_*
_PLAIN, _SWIZZLE_128 = 0, 3


def f16_boxes(pointer: int, rows: int, columns: int, box_rows: int) -> bytes:
    """The map of an f16 matrix [rows, columns] in boxes of ``box_rows`` by 64 columns, swizzled by 128 bytes."""
    return _encoded(_F16, pointer, rows, columns, 2 * columns, box_rows, 64, _SWIZZLE_128)


def byte_boxes(pointer: int, rows: int, columns: int, box_rows: int, box_columns: int) -> bytes:
    """The map of bytes [rows, columns] in boxes of ``box_rows`` by ``box_columns``, row after row."""
    return _encoded(_U8, pointer, rows, columns, columns, box_rows, box_columns, _PLAIN)


@lru_cache(maxsize=4096)
def _encoded(
    kind: int, pointer: int, rows: int, columns: int, row_bytes: int, box_rows: int, box_columns: int, swizzle: int
) -> bytes:
    """A box has at most 256 rows; ``pointer`` and the bytes of rows are multiples of 16; outside of the matrix are zeros.

    A map holds addresses and sizes only: the same arguments give the same bytes. Raises KernelError.
    """
    # The driver writes to an address that is a multiple of 64.
    space = ctypes.create_string_buffer(NBYTES + 64)
    at = -(-ctypes.addressof(space) // 64) * 64
    status = library().cuTensorMapEncodeTiled(
        ctypes.c_void_p(at),
        kind,
        2,
        ctypes.c_void_p(pointer),
        (ctypes.c_uint64 * 2)(columns, rows),
        (ctypes.c_uint64 * 1)(row_bytes),
        (ctypes.c_uint32 * 2)(box_columns, box_rows),
        (ctypes.c_uint32 * 2)(1, 1),
        _NO_INTERLEAVE,
        swizzle,
        _PROMOTE_256,
        _ZEROS,
    )
    check(status, f"tensor map of [{rows}, {columns}] at {pointer:#x} in boxes of {box_rows} by {box_columns}")
    return ctypes.string_at(at, NBYTES)
