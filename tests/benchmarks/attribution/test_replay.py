"""Labels go from a pass to its replay launch by launch, and only if the two really are the same pass."""

import numpy as np

from benchmarks.attribution.events import Launches, OperationLabel, Trace
from benchmarks.attribution.replay import with_labels_of

OPERATIONS = (OperationLabel("attn_q", "q4_K GEMM"), OperationLabel("attn_norm", "norm"))


def trace(rows, operations=(), nodes=False):
    """Rows are (start, symbol, operation)."""
    names = tuple(dict.fromkeys(symbol for _, symbol, _ in rows))
    start = np.array([row[0] for row in rows], np.int64)
    launches = Launches(
        start, start + 5, np.array([names.index(row[1]) for row in rows], np.int32), np.zeros(len(rows), np.int32),
        np.zeros(len(rows), np.int64), operation=np.array([row[2] for row in rows], np.int32),
        graph_node=np.arange(len(rows)) if nodes else None,
    )  # fmt: skip
    return Trace("cupti", names, launches, operations=operations)


LABELLED = trace([(100, "gemm", 0), (10, "norm", 1), (200, "gemm", 0)], OPERATIONS)


def test_a_replay_takes_the_labels_in_order_of_start_whatever_the_order_of_rows():
    replayed = trace([(30, "gemm", -1), (20, "gemm", -1), (5, "norm", -1)], nodes=True)
    found = with_labels_of(LABELLED, replayed)
    assert found.operations == OPERATIONS
    np.testing.assert_array_equal(found.launches.operation, [0, 0, 1])
    np.testing.assert_array_equal(found.launches.start, [30, 20, 5])
    np.testing.assert_array_equal(found.launches.graph_node, [0, 1, 2])


def test_another_sequence_is_not_guessed_at():
    for rows in ([(5, "norm", -1), (20, "gemm", -1)], [(5, "gemm", -1), (20, "norm", -1), (30, "gemm", -1)]):
        found = with_labels_of(LABELLED, trace(rows))
        assert found.launches is LABELLED.launches
        assert "shown without graphs" in found.notes[0]
