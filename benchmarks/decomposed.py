"""Several traced repetitions of one wall, taken apart: the median one is shown, all of them give the spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from .attribution.decompose import decompose
from .attribution.events import Trace
from .attribution.record import Decomposition, Wall


def decomposed(wall: Wall, traces: Sequence[Trace]) -> Wall:
    """The wall with its traced repetition of median length taken apart; classes keep their times in all of them."""
    parts = [decompose(trace) for trace in traces]
    lengths = [part.wall_ns for part in parts]
    median = parts[lengths.index(statistics.median_low(lengths))]
    return replace(wall, traced_ns=tuple(lengths), decomposition=_with_samples(median, parts))


def _with_samples(median: Decomposition, parts: list[Decomposition]) -> Decomposition:
    times = [{found.name: found.ns for found in part.classes} for part in parts]
    return replace(
        median,
        classes=tuple(replace(c, samples_ns=tuple(part.get(c.name, 0) for part in times)) for c in median.classes),
    )
