"""Cuts the ``traceEvents`` array of a Chrome JSON stream into blocks of whole events, and parses them into columns.

A block ends at a comma between events. Where that is cannot be seen without parsing all before it, so a likely place is
taken and the block parsed: text that starts at an event and parses as ``[...]`` ended between two events; if it does
not parse, an earlier place is tried. Two blocks are parsed at once, in C++, without the interpreter's lock.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..events import TraceError
from .source import BoundedStream

BLOCK = 4 << 20
LARGEST_EVENT = 64 << 20
LARGEST_HEADER = 64 << 20
BOUNDARIES_TRIED = 16
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BARE_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*(?:\{|\])")
Parsed = TypeVar("Parsed")


class NotJsonError(ValueError):
    """Raised by a block's parser where the text is not whole JSON: the block was cut in the wrong place."""


class EventBlocks(Generic[Parsed]):
    """Iterate to get each block parsed, in order; afterwards ``header`` holds the object around the events."""

    def __init__(self, path: Path, parse: Callable[[bytes], Parsed]) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self._parse = parse
        self._before = b""
        self._bare = False

    def __iter__(self) -> Iterator[Parsed]:
        with BoundedStream(self.path) as stream, ThreadPoolExecutor(2) as pool:
            rest = self._find_events(stream)
            waiting: deque[tuple[bytes, Future[Parsed]]] = deque()
            while more := stream.read(BLOCK):
                rest += more
                place = _last_boundary(rest, len(rest))
                if place is None:
                    self._check_event_size(rest)
                    continue
                waiting.append((rest[: place + 1], pool.submit(self._parse, rest[: place + 1])))
                rest = _after_comma(rest, place)
                if len(waiting) > 2:
                    try:
                        yield waiting[0][1].result()
                        waiting.popleft()
                    except NotJsonError:
                        parsed, rest = self._again(waiting, rest)
                        yield from parsed
            while waiting:
                try:
                    yield waiting[0][1].result()
                    waiting.popleft()
                except NotJsonError:
                    parsed, rest = self._again(waiting, rest)
                    yield from parsed
            yield from self._last(rest)

    def _find_events(self, stream: BoundedStream) -> bytes:
        head = stream.read(BLOCK)
        self._bare = bool(_BARE_ARRAY.match(head))
        pattern = _BARE_ARRAY if self._bare else _ARRAY
        while (match := pattern.search(head)) is None:
            more = stream.read(BLOCK)
            if not more:
                raise self._foreign(head)
            head += more
            if len(head) > LARGEST_HEADER:
                raise TraceError(f"{self.path}: no traceEvents array in the first {len(head):,} bytes; not a Chrome trace")
        opening = match.start() + match.group().index(b"[") + 1
        self._before = head[:opening]
        return head[opening:]

    def _foreign(self, text: bytes) -> TraceError:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return TraceError(f"{self.path}: begins as JSON, does not parse and holds no traceEvents; cut or not a trace")
        seen = ", ".join(sorted(value)[:4]) if isinstance(value, dict) else type(value).__name__
        return TraceError(
            f"{self.path}: JSON without a traceEvents array (seen: {seen or 'an empty object'}); "
            "expected a torch.profiler or kineto trace, or llama-bench results"
        )

    def _again(self, waiting: deque[tuple[bytes, Future[Parsed]]], rest: bytes) -> tuple[list[Parsed], bytes]:
        """The oldest waiting block was cut within an event: join all that is unread and cut it with care."""
        for _, future in waiting:
            future.cancel()
        rest = b",".join([*(block for block, _ in waiting), rest])
        waiting.clear()
        parsed: list[Parsed] = []
        while len(rest) > BLOCK:
            found = self._careful(rest, len(rest) if not parsed else BLOCK)
            if found is None:
                self._check_event_size(rest)
                break
            parsed.append(found[0])
            rest = found[1]
        return parsed, rest

    def _careful(self, text: bytes, limit: int) -> tuple[Parsed, bytes] | None:
        end = limit
        for _ in range(BOUNDARIES_TRIED):
            place = _last_boundary(text, end)
            if place is None:
                return None
            try:
                return self._parse(text[: place + 1]), _after_comma(text, place)
            except NotJsonError:
                end = place
        return None

    def _last(self, rest: bytes) -> Iterator[Parsed]:
        """What is left at the end of the file: some events, the closing bracket, and the rest of the object."""
        text = "[" + rest.decode("utf-8", errors="replace")
        try:
            events, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self.path}: the JSON ends within traceEvents; the file is cut, copy it again") from error
        inner = text[1 : end - 1]
        if events:
            try:
                yield self._parse(inner.encode())
            except NotJsonError as error:
                raise TraceError(f"{self.path}: traceEvents cannot be parsed ({error})") from error
        after = text[end:]
        try:
            whole = json.loads(self._before.decode("utf-8-sig") + "]" + after)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self.path}: the JSON ends after traceEvents; the file is cut, copy it again") from error
        self.header = whole if isinstance(whole, dict) else {}

    def _check_event_size(self, text: bytes) -> None:
        if len(text) > LARGEST_EVENT:
            raise TraceError(f"{self.path}: {len(text):,} bytes without the end of an event; not a Chrome trace")


_BOUNDARY = re.compile(rb"\}\s*,\s*\{")


def _last_boundary(text: bytes, end: int) -> int | None:
    """Where the last ``}`` before ``end`` stands that a comma and ``{`` follow."""
    place = text.rfind(b"}", 0, end)
    while place >= 0:
        if _BOUNDARY.match(text, place, min(len(text), place + 4096)):
            return place
        place = text.rfind(b"}", 0, place)
    return None


def _after_comma(text: bytes, place: int) -> bytes:
    return text[text.index(b",", place) + 1 :]
