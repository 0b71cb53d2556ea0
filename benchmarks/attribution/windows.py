"""Which stretch of a trace is taken apart: all of it, a named range, one of its iterations, or a span of time.

Ranges are host time and kernels run later: what the host launched inside a range may end after it. That is checked and
said, and the window stays what was asked for.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from .decompose import default_window
from .events import Trace, TraceError
from .record import Check

WHOLE = "whole trace"
_NUMBERED = re.compile(r"(?:^ProfilerStep#|\b(?:iteration|iter|step|batch)[\s_#:=]*)(\d+)$", re.IGNORECASE)
"""A range that numbers itself: torch.profiler's steps, and the usual names of a loop's rounds."""
_EDGE = re.compile(r"^\s*(?P<number>-?\d+(?:\.\d+)?)\s*(?P<unit>ns|us|ms|s)?\s*$")
_UNIT_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Window:
    """``start_ns`` and ``end_ns`` are on the trace's clock; None for the whole trace, where each device has its own."""

    kind: str
    """"whole trace", "range", "iteration" or "span"."""
    start_ns: int | None = None
    end_ns: int | None = None
    name: str | None = None
    occurrence: int | None = None
    """From 0, as nsys counts them."""
    occurrences: int | None = None
    checks: tuple[Check, ...] = ()

    @property
    def edges(self) -> tuple[int, int] | None:
        return None if self.start_ns is None or self.end_ns is None else (self.start_ns, self.end_ns)

    @property
    def sentence(self) -> str:
        """What was looked at, for people."""
        if self.kind == WHOLE:
            return "the whole trace (no range, iteration or span was named)"
        length = "" if self.edges is None else f", {(self.edges[1] - self.edges[0]) / 1e6:.3f} ms"
        if self.kind == "span":
            return f"span {self.start_ns}..{self.end_ns} ns{length}"
        of = f", occurrence {self.occurrence} of 0..{(self.occurrences or 1) - 1}" if (self.occurrences or 0) > 1 else ""
        return f"{self.kind} {self.name!r}{of}{length}"


def choose(
    trace: Trace,
    *,
    range_name: str | None = None,
    iteration: int | None = None,
    span: str | None = None,
    where: str | None = None,
) -> Window:
    """The window that was asked for. Raises TraceError where the trace does not hold it, saying what it does hold.

    ``where`` names the trace in errors.
    """
    where = where or trace.source_format
    if span is not None:
        if range_name is not None or iteration is not None:
            raise TraceError("--span and --range or --iteration exclude each other; give one")
        start, end = _span(trace, span, where)
        return Window("span", start, end)
    if range_name is None and iteration is None:
        return Window(WHOLE)
    if trace.ranges is None or not len(trace.ranges):
        raise TraceError(f"{where}: the trace holds no ranges; leave out --range and --iteration, or use --span")
    ids = np.unique(trace.ranges.name)
    names = {int(index): trace.names[int(index)] for index in ids}
    if range_name is None:
        numbers = {index: match for index, text in names.items() if (match := _NUMBERED.search(text))}
        wanted = [index for index, match in numbers.items() if int(match[1]) == iteration]
        if not wanted:
            seen = sorted({int(match[1]) for match in numbers.values()})
            have = (
                f"it holds iterations {_list(seen)}"
                if seen
                else f"no range numbers itself; it holds {_list(names.values())}"
            )
            raise TraceError(f"{where}: no iteration {iteration}; {have}")
        return _occurrence(trace, wanted, names[wanted[0]], None, "iteration", where)
    wanted = [index for index, text in names.items() if text == range_name]
    if not wanted:
        close = difflib.get_close_matches(range_name, names.values(), SHOWN, 0.5) or list(names.values())
        raise TraceError(f"{where}: no range named {range_name!r}; it holds {_list(close)}")
    return _occurrence(trace, wanted, range_name, iteration, "range", where)


def _occurrence(trace: Trace, wanted: list[int], name: str, number: int | None, kind: str, where: str) -> Window:
    assert trace.ranges is not None
    rows = np.flatnonzero(np.isin(trace.ranges.name, wanted))
    rows = rows[np.argsort(trace.ranges.start[rows], kind="stable")]
    if number is not None and not 0 <= number < len(rows):
        raise TraceError(f"{where}: range {name!r} occurs {len(rows)} times; expected --iteration 0..{len(rows) - 1}")
    chosen = 0 if number is None else number
    start, end = int(trace.ranges.start[rows[chosen]]), int(trace.ranges.end[rows[chosen]])
    if end <= start:
        raise TraceError(f"{where}: range {name!r} is empty at {start} ns; name another occurrence with --iteration")
    checks = []
    if number is None and len(rows) > 1:
        detail = f"{name!r} occurs {len(rows)} times; the first was taken, choose with --iteration 0..{len(rows) - 1}"
        checks.append(Check("one range of that name", False, float(len(rows)), 1.0, "ranges", detail))
    checks.append(_holds_its_launches(trace, start, end, int(trace.ranges.thread[rows[chosen]])))
    return Window(kind, start, end, name, chosen, len(rows), tuple(checks))


def _holds_its_launches(trace: Trace, start: int, end: int, thread: int) -> Check:
    """Do the kernels that the range's thread launched in it also end in it?"""
    name, calls, launches = "range holds its kernels", trace.api_calls, trace.launches
    if calls is None or calls.correlation is None or launches is None or launches.correlation is None:
        return Check(
            name, None, None, 0.0, "kernels", "no API calls in the trace: which kernels the range launched is unknown"
        )
    inside = (calls.start >= start) & (calls.start < end)
    if thread >= 0:
        inside &= (calls.thread == thread) | (calls.thread < 0)
    launched = np.isin(launches.correlation, calls.correlation[inside]) & (launches.correlation >= 0)
    late = int((launched & (launches.end > end)).sum())
    detail = f"{late} of {int(launched.sum())} kernels launched in it end after it and are cut or left out" if late else ""
    return Check(name, late == 0, float(late), 0.0, "kernels", detail)


def _span(trace: Trace, text: str, where: str) -> tuple[int, int]:
    parts = text.split(":")
    if len(parts) != 2:
        raise TraceError(
            f"--span {text!r}; expected A:B, in ns on the trace's clock, or with a unit from its first activity"
        )
    origin, last = default_window(trace)
    start, end = _edge(parts[0], text, origin, origin), _edge(parts[1], text, origin, last)
    if end <= start:
        raise TraceError(f"--span {text!r} ends at or before its start; expected A before B")
    if end <= origin or start >= last:
        raise TraceError(f"{where}: --span {text!r} lies outside the trace, whose activity is {origin}:{last} ns")
    return start, end


def _edge(part: str, whole: str, origin: int, default: int) -> int:
    if not part.strip():
        return default
    match = _EDGE.match(part)
    if match is None:
        raise TraceError(
            f"--span {whole!r}: {part!r} is no time; expected ns on the trace's clock, or a number with us, ms or s"
        )
    try:
        number = Decimal(match["number"])
    except InvalidOperation as error:
        raise TraceError(f"--span {whole!r}: {part!r} is no number") from error
    unit = match["unit"]
    return int(number) if unit is None else origin + int(number * _UNIT_NS[unit])


def _list(values: object) -> str:
    texts = [str(value) for value in values]  # type: ignore[attr-defined]
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return (", ".join(texts[:SHOWN]) or "none") + more
