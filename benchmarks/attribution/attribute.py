"""A foreign trace answered: its devices taken apart by the core, with the checks and the queue.

Unknown is None and never 0: sums without a timeline have no busy, no gap and no wall.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from . import intervals
from .breakdown import class_sums
from .checks import MAX_UNCLASSIFIED_SHARE, decomposition_checks
from .classes import UNCLASSIFIED, Rule
from .decompose import NoActivityError, decompose, default_window, devices
from .events import BenchResult, KernelProfile, KernelSum, Trace, TraceError
from .foreign_queue import foreign_queue
from .ranges import RangeTime, label_by_ranges, range_times
from .record import Check, ClassTime, Decomposition
from .recover import Entry
from .windows import Window
from .work import Work, give

UNKNOWN_DEVICE = "unknown"
"""Key of the device where a format does not name any."""


@dataclass(frozen=True, slots=True)
class CopySum:
    """All copies of one kind inside the window; copies may overlap kernels and each other."""

    kind: str
    count: int
    summed_ns: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class DeviceAnswer:
    """One device. ``decomposition`` is None where the trace knows sums only; then ``classes`` hold summed time."""

    device: str
    name: str | None
    kernels: int
    summed_ns: int
    classes: tuple[ClassTime, ...]
    decomposition: Decomposition | None = None
    window_ns: tuple[int, int] | None = None
    copies: tuple[CopySum, ...] = ()
    checks: tuple[Check, ...] = ()
    queue: tuple[Entry, ...] = ()
    """What could be won, most first; empty without a timeline."""
    ranges: tuple[RangeTime, ...] = ()
    """Busy time by the named range that launched it; empty where that was not asked for."""

    def share(self, item: ClassTime) -> float | None:
        """A class's part of busy; None where busy is unknown."""
        busy = None if self.decomposition is None else self.decomposition.busy_ns
        return item.ns / busy if busy else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What ``attribute`` says of one trace."""

    path: str
    format: str
    window: Window
    devices: tuple[DeviceAnswer, ...]
    bench_results: tuple[BenchResult, ...] = ()
    profiles: tuple[KernelProfile, ...] = ()
    """Kernels that were profiled one by one, with their traffic."""
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[tuple[str | None, Check], ...]:
        """Checks that did not pass, with the device that each speaks of (None: the window)."""
        return tuple((device, check) for device, check in self.all_checks if check.passed is False)

    @property
    def all_checks(self) -> tuple[tuple[str | None, Check], ...]:
        own: list[tuple[str | None, Check]] = [(None, check) for check in self.window.checks]
        return (*own, *((item.device, check) for item in self.devices for check in item.checks))


def attribute(
    trace: Trace,
    path: str,
    window: Window,
    *,
    device: int | None = None,
    rules: tuple[Rule, ...] | None = None,
    work: Work | None = None,
    tokens: int | None = None,
    by_range: str | None = None,
) -> Answer:
    """Take a trace apart. Raises TraceError where it holds nothing to attribute or not that device.

    ``work`` is what ``work.label`` found for this trace, ``tokens`` the prompt length that it was found for; without them
    GMAC, cost and tokens per second stay unknown. ``by_range`` is a regular expression: busy time is also given by the
    innermost named range that it finds.
    """
    work = work or Work(trace)
    trace = work.trace if by_range is None else label_by_ranges(work.trace, by_range)
    notes = [*trace.notes, *work.notes]
    if trace.bench_results:
        return Answer(path, trace.source_format, window, (), trace.bench_results, (), tuple(notes))
    if trace.launches is None:
        answers = _sums(trace, rules)
        if window.edges is not None:
            raise TraceError(f"{path}: {trace.source_format} holds sums without a timeline, so no window can be cut out")
    else:
        answers = _timelines(trace, path, window, device, rules, notes)
        if by_range is not None:
            answers = tuple(
                replace(item, ranges=range_times(trace, int(item.device), item.window_ns, rules))
                for item in answers
                if item.window_ns is not None
            )
    if device is not None and answers:
        have = ", ".join(item.device for item in answers)
        answers = tuple(item for item in answers if item.device == str(device))
        if not answers:
            raise TraceError(f"{path}: no device {device}; the trace holds {have}")
    if not answers:
        why = notes[-1] if notes else "record kernels"
        raise NoActivityError(f"{path}: {trace.source_format}: no GPU activity recorded, which is not an idle GPU; {why}")
    priced = tuple(_priced(item, work, notes, trace.source_format, tokens) for item in answers)
    return Answer(path, trace.source_format, window, priced, (), trace.profiles, tuple(dict.fromkeys(notes)))


def _priced(item: DeviceAnswer, work: Work, notes: list[str], source: str, tokens: int | None) -> DeviceAnswer:
    classes, said = give(item.classes, work)
    notes.extend(said)
    if item.decomposition is None:
        return replace(item, classes=classes)
    part = replace(item.decomposition, classes=classes)
    return replace(item, classes=classes, decomposition=part, queue=foreign_queue(part, source, tokens))


def _timelines(
    trace: Trace, path: str, window: Window, device: int | None, rules: tuple[Rule, ...] | None, notes: list[str]
) -> tuple[DeviceAnswer, ...]:
    present = devices(trace)
    if device is not None and device not in present and present:
        raise TraceError(f"{path}: no device {device}; the trace holds {', '.join(map(str, present))}")
    answers, errors = [], []
    for number in present if device is None else [device]:
        try:
            part = decompose(trace, device=number, window=window.edges, rules=rules)
        except NoActivityError as error:
            if device is not None and present:
                raise NoActivityError(f"{path}: {error}") from error
            errors.append(f"device {number}: no kernel was recorded there in the window, so it is left out")
            continue
        edges = window.edges or default_window(trace, number)
        answers.append(
            DeviceAnswer(
                device=str(number),
                name=trace.device_names.get(number),
                kernels=sum(item.launches for item in part.classes),
                summed_ns=part.summed_ns or 0,
                classes=part.classes,
                decomposition=part,
                window_ns=edges,
                copies=_copies(trace, number, edges),
                checks=decomposition_checks(part),
            )
        )
    if not answers and window.edges is not None:
        raise NoActivityError(f"{path}: no kernel ran in {window.sentence}; choose a wider window")
    if answers:
        notes.extend(errors)
    return tuple(answers)


def _sums(trace: Trace, rules: tuple[Rule, ...] | None) -> tuple[DeviceAnswer, ...]:
    """Sums by device: ncu names a device per kernel, ``nsys stats`` none."""
    by_device: dict[str, list[KernelSum]] = {}
    if trace.profiles:
        for profile in trace.profiles:
            if profile.duration_ns is not None:
                key = UNKNOWN_DEVICE if profile.device is None else str(profile.device)
                by_device.setdefault(key, []).append(KernelSum(profile.name, 1, profile.duration_ns))
    elif trace.sums:
        by_device[UNKNOWN_DEVICE] = list(trace.sums)
    answers = []
    for key, rows in sorted(by_device.items()):
        classes = class_sums(tuple(rows), rules)
        total = sum(row.total_ns for row in rows)
        unknown = sum(item.ns for item in classes if item.name == UNCLASSIFIED)
        listed = "; ".join(symbol for item in classes if item.name == UNCLASSIFIED for symbol in item.symbols)
        share = unknown / total if total else None
        check = Check(
            "unclassified share of kernel time", None if share is None else share <= MAX_UNCLASSIFIED_SHARE,
            share, MAX_UNCLASSIFIED_SHARE, "share", listed,
        )  # fmt: skip
        answers.append(DeviceAnswer(key, None, sum(row.launches for row in rows), total, classes, checks=(check,)))
    return tuple(answers)


def _copies(trace: Trace, device: int, edges: tuple[int, int]) -> tuple[CopySum, ...]:
    copies = trace.copies
    if copies is None:
        return ()
    rows = np.flatnonzero((copies.device == device) & (copies.start < edges[1]) & (copies.end > edges[0]))
    start, end = intervals.clip(copies.start[rows], copies.end[rows], edges)
    found = []
    for kind in np.unique(copies.kind[rows]).tolist():
        mine = copies.kind[rows] == kind
        sizes = None if copies.bytes is None else copies.bytes[rows][mine]
        known = sizes is not None and bool((sizes >= 0).all())
        total = int(sizes.sum()) if sizes is not None and known else None
        found.append(CopySum(trace.copy_kinds[kind], int(mine.sum()), int((end - start)[mine].sum()), total))
    return tuple(sorted(found, key=lambda item: -item.summed_ns))
