"""One layer of a trace as it ran: which launches, when, on which stream. The middle layer stands for the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .breakdown import launch_classes
from .classes import Rule
from .events import Int64, Trace
from .record import LayerLaunch, LayerTimeline
from .symbols import function_name, readable

MAX_LAUNCHES = 256
"""Launches kept of one layer, first ones first: an engine may launch for each expert, and a record stays a few KB a wall."""


def layer_timeline(
    trace: Trace, rows: NDArray[np.intp], rules: tuple[Rule, ...] | None, *, label_wins: bool
) -> LayerTimeline | None:
    """The launches of the middle layer among ``rows``, in order of their start; None where no launch names a layer.

    A layer runs once an ubatch; the last run is taken, whose caches hold the most. Launches that name no layer belong to
    the run that they precede: llama.cpp's trace names its matrix products only.
    """
    launches = trace.launches
    if launches is None or launches.operation is None or not trace.operations:
        return None
    rows = rows[np.argsort(launches.start[rows], kind="stable")]
    layers = np.array([-1 if label.layer is None else label.layer for label in trace.operations] + [-1], np.int64)
    layer = layers[launches.operation[rows]]
    named = np.unique(layer[layer >= 0])
    if named.size == 0:
        return None
    middle = int(named[named.size // 2])
    first, last = _last_run(layer, middle)
    inside = rows[first : last + 1]
    kept = inside[:MAX_LAUNCHES]
    names, chosen = launch_classes(trace, kept, rules, label_wins=label_wins)
    origin = int(launches.start[inside[0]])
    return LayerTimeline(
        layer=middle,
        launches=tuple(
            LayerLaunch(
                operation=_operation(trace, int(row)),
                kernel_class=names[which],
                symbol=readable(trace.names[launches.name[row]]),
                start_ns=int(launches.start[row]) - origin,
                ns=int(launches.end[row] - launches.start[row]),
                stream=int(launches.stream[row]),
            )
            for row, which in zip(kept, chosen.tolist(), strict=True)
        ),
        left_out=inside.size - kept.size,
    )


def _last_run(layer: Int64, wanted: int) -> tuple[int, int]:
    """Places of the first and last launch of the last run of ``wanted`` in ``layer``, which is in order of time."""
    named = np.flatnonzero(layer >= 0)
    mine = named[layer[named] == wanted]
    last = int(mine[-1])
    others = named[(layer[named] != wanted) & (named < last)]
    # What names no layer right before the run is its own; at the start of the wall it is the embedding's.
    first = int(others[-1]) + 1 if others.size else int(mine[0])
    return first, last


def _operation(trace: Trace, row: int) -> str:
    assert trace.launches is not None and trace.launches.operation is not None
    operation = int(trace.launches.operation[row])
    return trace.operations[operation].name if operation >= 0 else function_name(trace.names[trace.launches.name[row]])
