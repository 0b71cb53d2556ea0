"""Buffers as CUPTI fills them: walked by its own function, read by cupti-python's layouts, said in the same records."""

from __future__ import annotations

import ctypes as c
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.capture import cupti
from benchmarks.capture.cupti_buffers import BUFFER_BYTES, Buffers, layouts_of, loaded_library, read_buffer
from benchmarks.capture.cupti_records import (
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


def layout(kind, *more):
    """A record of a kind: its fields in an order of CUPTI's own, and what nobody keeps."""
    names = ("kind", *more, *sorted(set(FIELDS[kind]) - {"kind"}))
    wide = {"kind": np.uint32, "correlation_id": np.uint32, "cbid": np.uint32, "device_id": np.uint32}
    return np.dtype([(name, wide.get(name, np.uint64)) for name in names], align=True)


MODULE = SimpleNamespace(
    activity_kernel9_dtype=layout(DRIVER), activity_kernel10_dtype=layout(KERNEL, "padding"),
    activity_api_dtype=layout(DRIVER, "process_id"), activity_external_correlation_dtype=layout(EXTERNAL_CORRELATION),
    activity_memcpy6_dtype=layout(MEMCPY), activity_memcpy_pto_p4_dtype=layout(MEMCPY2),
    activity_memset4_dtype=layout(MEMSET), activity_kernel_name="no layout",
)  # fmt: skip
NAMES = [c.create_string_buffer(text) for text in (b"gemm", b"norm")]


def records():
    """(kind, fields by name) of what a device did; a kernel's name is an address."""
    kernel = dict.fromkeys(FIELDS[KERNEL], 1) | {"start": 5, "end": 9, "correlation_id": 77, "graph_node_id": 0}
    call = dict.fromkeys(FIELDS[DRIVER], 2) | {"cbid": 307}
    copy = dict.fromkeys(FIELDS[MEMCPY], 3) | {"copy_kind": 2, "bytes": 64}
    return [
        (DRIVER, call | {"kind": DRIVER}),
        (EXTERNAL_CORRELATION, {"correlation_id": 77, "external_id": 4}),
        (KERNEL, kernel | {"name": c.addressof(NAMES[0])}),
        (RUNTIME, call | {"kind": RUNTIME, "cbid": 211}),
        (KERNEL, kernel | {"name": c.addressof(NAMES[1]), "graph_node_id": 21}),
        (MEMCPY, copy),
        (MEMCPY2, copy | {"copy_kind": 10}),
        (MEMSET, {name: value for name, value in copy.items() if name != "copy_kind"}),
    ]


def packed(found):
    layouts, parts = layouts_of(MODULE), []
    for kind, fields in found:
        row = np.zeros(1, layouts[kind])
        for name, value in {**fields, "kind": kind}.items():
            row[name] = value
        parts.append(row.tobytes())
    return parts


class Library:
    """CUPTI's side of the interface: fills what it is given and walks it by the records' true sizes."""

    def __init__(self, parts, ends=12):
        self.parts, self.ends = parts, ends
        self.at = 0

    def cuptiActivityRegisterCallbacks(self, requested, completed):  # noqa: N802 -- CUPTI's own spelling
        self.requested, self.completed = requested, completed
        return 0

    def next(self, buffer, valid, record):
        if self.at == len(self.parts):
            self.at = 0
            return self.ends
        record._obj.value = buffer.value + sum(map(len, self.parts[: self.at]))
        self.at += 1
        return 0

    def fill(self):
        buffer, size, most = c.c_void_p(), c.c_size_t(), c.c_size_t(9)
        self.requested(c.byref(buffer), c.byref(size), c.byref(most))
        assert (size.value, most.value, buffer.value % 8) == (BUFFER_BYTES, 0, 0)
        raw = b"".join(self.parts)
        c.memmove(buffer.value, raw, len(raw))
        self.completed(None, 0, buffer.value, size.value, len(raw))
        return buffer.value


def test_a_buffer_says_what_its_records_say_one_by_one():
    library, filled = Library(packed(records())), []
    buffers = Buffers(library, library.next)
    assert buffers.register(lambda raw, starts: filled.append((raw, starts)))
    first = library.fill()
    # The same memory again: CUPTI has done with it.
    assert library.fill() == first
    assert buffers.failed == 0
    seen, expected = Records(), Records()
    for raw, starts in filled:
        read_buffer(seen, raw, starts, layouts_of(MODULE))
    names = {c.addressof(name): name.value.decode() for name in NAMES}
    for kind, fields in records() * 2:
        expected.add(kind, tuple(names.get(fields[name], fields[name]) for name in FIELDS[kind]))
    for found in (seen, expected):
        for rows in (found.kernels, found.copies, found.api):
            rows.sort()
    assert seen == expected
    assert [row[2] for row in seen.kernels] == ["gemm", "gemm", "norm", "norm"]
    assert seen.external == {77: 4}


def test_two_buffers_that_wait_at_once_are_two():
    library = Library(packed(records()))
    Buffers(library, library.next).register(lambda raw, starts: None)
    asked = []
    for _ in range(2):
        buffer, size, most = c.c_void_p(), c.c_size_t(), c.c_size_t()
        library.requested(c.byref(buffer), c.byref(size), c.byref(most))
        asked.append(buffer.value)
    assert asked[0] != asked[1]


def test_a_kind_without_a_layout_and_an_empty_buffer_are_left_out():
    seen, part = Records(), packed(records()[:1])[0]
    layouts = {kind: found for kind, found in layouts_of(MODULE).items() if kind != DRIVER}
    read_buffer(seen, part, [0], layouts)
    read_buffer(seen, b"", [], layouts)
    assert seen == Records()


def test_the_newest_layout_counts_and_one_that_lacks_a_field_is_none_at_all():
    assert layouts_of(MODULE)[KERNEL] is MODULE.activity_kernel10_dtype
    short = SimpleNamespace(**{**vars(MODULE), "activity_memset5_dtype": layout(EXTERNAL_CORRELATION)})
    assert layouts_of(short) is None
    assert layouts_of(SimpleNamespace()) is None


def test_a_buffer_that_cannot_be_walked_is_no_trace(monkeypatch):
    library = Library(packed(records()), ends=7)
    buffers = Buffers(library, library.next)
    module = SimpleNamespace(
        cuptiError=RuntimeError, get_timestamp=lambda: 1, activity_enable=lambda kind: None,
        activity_disable=lambda kind: None, activity_flush_all=lambda flag: library.fill(), **vars(MODULE),
    )  # fmt: skip
    for name, value in (("_registered", False), ("_direct", None), ("loaded_library", lambda: buffers)):
        monkeypatch.setattr(cupti, name, value)
    seen = cupti.CuptiCapture(lambda operation: operation, module)
    with pytest.raises(cupti.CuptiUnavailableError, match="ends in status 7, expected 12"), seen:
        pass


def test_without_cupti_in_the_process_there_is_no_library(tmp_path):
    maps = tmp_path / "maps"
    maps.write_text("7f00-7f01 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6\n")
    assert loaded_library(maps) is None
    maps.write_text("7f00-7f01 r-xp 00000000 fe:00 12 /nowhere/lib/libcupti.so.13\n")
    assert loaded_library(maps) is None
    assert loaded_library(tmp_path / "none") is None
