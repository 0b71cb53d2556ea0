"""A replayed CUDA graph names no operation: its launches take the labels of the same pass launched kernel by kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .events import Int32, Launches, Trace


def with_labels_of(labelled: Trace, replayed: Trace) -> Trace:
    """``replayed`` with the operations of ``labelled``, launch by launch in order of start.

    The two must be the same pass: as many launches with the same symbols in the same order. Where they are not,
    ``labelled`` is the answer, with a note, since a guessed label would be worse than a slower path.
    """
    if labelled.launches is None or replayed.launches is None or labelled.launches.operation is None:
        return labelled
    ours, theirs = _order(labelled.launches), _order(replayed.launches)
    if _symbols(labelled, ours) != _symbols(replayed, theirs):
        note = f"the graph replays {len(theirs)} launches, the labelled pass has {len(ours)} or others: shown without graphs"
        return replace(labelled, notes=(*labelled.notes, note))
    operation: Int32 = np.full(len(theirs), -1, np.int32)
    operation[theirs] = labelled.launches.operation[ours]
    return replace(replayed, launches=replace(replayed.launches, operation=operation), operations=labelled.operations)


def _order(launches: Launches) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.argsort(launches.start, kind="stable")


def _symbols(trace: Trace, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[str]:
    assert trace.launches is not None
    return [trace.names[index] for index in trace.launches.name[order]]
