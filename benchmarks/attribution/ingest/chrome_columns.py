"""Blocks of Chrome JSON events as Arrow columns: times exact, everything else that an attribution needs as integers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..events import Int32, Int64, TraceError
from .json_stream import NotJsonError

ABSENT = -1
ARGUMENTS = {
    "device": "device",
    "stream": "stream",
    "correlation": "correlation",
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "bytes": "bytes",
    "graph_node": "graph node id",
}
"""Our column, and its key in an event's args."""
_TEXT = re.compile(rb'("(?:tid|grid|block|%s)"\s*:\s*)"([^"\\]*)"' % "|".join(ARGUMENTS.values()).encode())


def _schema(time: Any) -> Any:
    import pyarrow as pa

    arguments = [(key, pa.int64()) for key in ARGUMENTS.values()]
    arguments += [("grid", pa.list_(pa.int64())), ("block", pa.list_(pa.int64()))]
    event = [("ph", pa.string()), ("cat", pa.string()), ("name", pa.string()), ("tid", pa.int64())]
    event += [("ts", time), ("dur", time), ("args", pa.struct(arguments))]
    return pa.schema([("events", pa.list_(pa.struct(event)))])


class EventParser:
    """Parses blocks of events as Arrow struct arrays, times as decimal microseconds.

    Events that are none of ours write text where kernels have a number, and a file that was written again has more digits
    than ns: what one block needed is tried first on the next.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next = 0

    def __call__(self, text: bytes) -> Any:
        """One block. Raises NotJsonError where it is not whole events, TraceError for a value of the wrong kind."""
        import pyarrow as pa

        ways = ((False, pa.decimal128(38, 3)), (True, pa.decimal128(38, 3)), (True, pa.decimal256(76, 30)))
        for number in range(self._next, len(ways)):
            spelt, time = ways[number]
            try:
                events = _arrow(_TEXT.sub(_number_or_null, text) if spelt else text, time)
            except pa.ArrowInvalid as error:
                reason = _first_line(error)
                continue
            self._next = number
            return events
        try:
            json.loads(b"[" + text + b"]")
        except (ValueError, RecursionError) as broken:
            raise NotJsonError(str(broken)) from broken
        raise TraceError(f"{self._path}: an event holds a value of the wrong kind ({reason})")


def _number_or_null(match: re.Match[bytes]) -> bytes:
    return match[1] + (match[2] if match[2].isdigit() else b"null")


def _arrow(text: bytes, time: Any) -> Any:
    import pyarrow as pa
    import pyarrow.json

    framed = b'{"events":[' + text + b"]}"
    table = pyarrow.json.read_json(
        pa.BufferReader(framed),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(framed) + 1),
        pyarrow.json.ParseOptions(explicit_schema=_schema(time), unexpected_field_behavior="ignore"),
    )
    if table.num_rows != 1:
        raise pa.ArrowInvalid("more than one object")
    return table["events"].combine_chunks().flatten()


def nanoseconds(column: Any, path: Path) -> Int64:
    """Decimal microseconds as integer ns, exactly; what is finer than a ns is rounded half to even."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = pc.fill_null(column, pa.scalar(0, pa.int64()).cast(column.type))
    try:
        if not pa.types.is_decimal128(column.type):
            filled = pc.round(filled, ndigits=3, round_mode="half_to_even").cast(pa.decimal128(38, 3))
    except pa.ArrowInvalid as error:
        raise TraceError(f"{path}: a time does not fit 64 bits of ns ({_first_line(error)})") from error
    words = np.frombuffer(filled.buffers()[1], dtype=np.int64).reshape(-1, 2)[filled.offset : filled.offset + len(filled)]
    low: Int64 = words[:, 0].copy()
    if (words[:, 1] != low >> 63).any() or (np.abs(low) > 1 << 62).any():
        raise TraceError(f"{path}: a time does not fit 64 bits of ns; the trace is corrupt")
    return low


def integers(column: Any) -> Int64:
    import pyarrow.compute as pc

    out: Int64 = pc.fill_null(column, ABSENT).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return out


def shapes(column: Any) -> Int32:
    """Lists of three as rows [n, 3]; -1 where an event has none."""
    import pyarrow.compute as pc

    whole = pc.fill_null(pc.equal(pc.list_value_length(column), 3), False)
    mask = whole.to_numpy(zero_copy_only=False)
    out = np.full((len(column), 3), ABSENT, dtype=np.int32)
    out[mask] = integers(column.filter(whole).flatten()).reshape(-1, 3)
    return out


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:120]
