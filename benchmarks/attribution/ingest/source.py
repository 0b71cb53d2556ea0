"""Opening a file that somebody else made: what it is must be safe to find out before it is known what it is.

Compressed input is read within bounds: a deflate stream can grow a thousandfold, a trace never does.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO

from ..events import TraceError

GZIP_MAGIC = b"\x1f\x8b"
LARGEST_GROWTH = 400
"""Bytes out per byte in. Traces of one kernel repeated for ever stay under 100; deflate's own limit is 1,032."""
GROWTH_CHECKED_AFTER = 64 << 20
LARGEST_TEXT = 1 << 30
"""Bytes of a format that is read whole (tables, lists). Timelines of that size come as sqlite or Chrome JSON."""


class BoundedStream(io.RawIOBase):
    """Reads a plain or gzip file as bytes, and refuses with one line what is cut, corrupt or a decompression bomb."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._file = open_plain(path)
        self._packed = self._file.peek(2)[:2] == GZIP_MAGIC
        self._stream: BinaryIO = gzip.GzipFile(fileobj=self._file) if self._packed else self._file  # type: ignore[assignment]
        self.bytes_out = 0

    @property
    def packed(self) -> bool:
        return self._packed

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes, empty at the end. Raises TraceError."""
        try:
            data = self._stream.read(size)
        except EOFError as error:
            raise TraceError(f"{self.path}: the gzip stream ends early; the file is cut, copy it again") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TraceError(f"{self.path}: corrupt gzip ({error}); copy it again") from error
        except OSError as error:
            raise TraceError(f"{self.path}: cannot be read ({error.strerror or error})") from error
        self.bytes_out += len(data)
        if self._packed and self.bytes_out > GROWTH_CHECKED_AFTER:
            growth = self.bytes_out / max(self._file.tell(), 1)
            if growth > LARGEST_GROWTH:
                raise TraceError(
                    f"{self.path}: {self.bytes_out:,} bytes came out of {self._file.tell():,} compressed ones, over "
                    f"{LARGEST_GROWTH} to 1: a decompression bomb, not a trace"
                )
        return data

    def close(self) -> None:
        self._stream.close()
        self._file.close()
        super().close()


def open_plain(path: Path) -> io.BufferedReader:
    """The file's raw bytes. Raises TraceError for what is absent, a directory, unreadable or empty."""
    try:
        if path.is_dir():
            raise TraceError(f"{path}: is a directory; name one trace file")
        if path.exists() and not path.is_file():
            raise TraceError(f"{path}: is not a regular file; name one trace file")
        if path.is_file() and path.stat().st_size == 0:
            raise TraceError(f"{path}: is empty; export the trace again")
        return path.open("rb")
    except TraceError:
        raise
    except FileNotFoundError as error:
        raise TraceError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error})") from error


def read_head(path: Path, size: int = 1 << 16) -> tuple[bytes, bool]:
    """The first bytes after decompression, and whether the file was compressed. Raises TraceError."""
    with BoundedStream(path) as stream:
        return stream.read(size), stream.packed


def read_text(path: Path) -> str:
    """A whole text file, decompressed and decoded (UTF-8, or UTF-16 by its byte order mark). Raises TraceError."""
    parts: list[bytes] = []
    with BoundedStream(path) as stream:
        while part := stream.read(1 << 22):
            parts.append(part)
            if stream.bytes_out > LARGEST_TEXT:
                raise TraceError(f"{path}: over {LARGEST_TEXT:,} bytes of text; export such a trace as sqlite")
    data = b"".join(parts)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not {encoding} text at byte {error.start:,}; not a trace that is read here") from error
