"""What every importer does to its columns: intern names, and refuse times that no clock can have given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..events import Int32, Int64, TraceError

CLOCK_STARTS_AT_ZERO_NS = 1_000_000_000
"""A trace whose other events begin later than this does not start its clock at zero, so a 0 there is "not collected"."""

LARGEST_DEVICE = 65535


class Names:
    """The table behind ``Trace.names``: each spelling once."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def ids(self, spellings: Iterable[str]) -> Int32:
        """Indices of the spellings, adding what is new."""
        known = self._ids
        return np.fromiter((known.setdefault(text, len(known)) for text in spellings), dtype=np.int32)

    def table(self) -> tuple[str, ...]:
        return tuple(self._ids)


def check_times(start: Int64, end: Int64, what: str, path: Path) -> None:
    """Raise TraceError unless every event ends at or after its start and both times were collected (trust rule 9)."""
    if not len(start):
        return
    uncollected = (end == 0) | ((start == 0) & (end == 0))
    if (start == 0).any() and (start > 0).any() and int(start[start > 0].min()) > CLOCK_STARTS_AT_ZERO_NS:
        uncollected |= start == 0
    if uncollected.any():
        raise TraceError(
            f"{path}: {int(uncollected.sum()):,} of {len(start):,} {what} have timestamp 0, which means that the time was "
            "not collected; record the trace again"
        )
    if (start < 0).any():
        raise TraceError(f"{path}: {int((start < 0).sum()):,} of {len(start):,} {what} have a negative timestamp")
    backwards = np.flatnonzero(end < start)
    if len(backwards):
        row = int(backwards[0])
        raise TraceError(
            f"{path}: {len(backwards):,} of {len(start):,} {what} end before they start (the first: start {start[row]}, "
            f"end {end[row]} ns); the trace is corrupt, record it again"
        )


def device_ids(device: Int64, path: Path) -> Int32:
    """Device numbers as the columns keep them; -1 where a row names none. Raises TraceError for what is no device."""
    if len(device) and (int(device.min()) < -1 or int(device.max()) > LARGEST_DEVICE):
        wrong = int(device.max() if int(device.max()) > LARGEST_DEVICE else device.min())
        raise TraceError(
            f"{path}: device number {wrong}; expected 0 to {LARGEST_DEVICE}; the trace is corrupt, export it again"
        )
    return device.astype(np.int32)


def usable(start: Int64, end: Int64) -> NDArray[np.bool_]:
    """Host events that have both times. Host events only explain device time, so a bad one is left out, not fatal."""
    keep: NDArray[np.bool_] = (start > 0) & (end >= start)
    return keep


def joined(parts: Sequence[NDArray[np.generic]], dtype: type) -> NDArray[np.generic]:
    """One column out of its chunks; of length 0 where there are none."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)
