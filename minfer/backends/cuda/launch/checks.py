"""What every launcher checks, and how it shares a row of work among blocks."""

from __future__ import annotations

from ....kernels import KernelError
from ..arrays import DeviceArray

LARGE_SHARED = ("sm_80", "sm_90a")
"""Targets whose blocks may have 160 KiB of shared memory and more; of the others that were looked at, each gives 99 KiB."""


def expect(what: str, array: DeviceArray, dtypes: str, shape: tuple[int | None, ...], multiple: int = 1) -> None:
    """Raise KernelError unless ``array`` has one of the types, the shape (None: any), and rows of whole ``multiple``s."""
    fits = len(array.shape) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype not in dtypes.split() or array.shape[-1] % multiple or array.pointer % 16:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise KernelError(
            f"{what} is {array.dtype} {array.shape} at address {array.pointer:#x}, "
            f"expected {dtypes.replace(' ', ' or ')} ({wanted}), "
            f"rows of a multiple of {multiple} elements, aligned to 16 bytes"
        )


def blocks(count: int, threads: int) -> tuple[int, int, int]:
    """The grid of as many blocks of ``threads`` as ``count`` threads need."""
    return -(-count // threads), 1, 1
