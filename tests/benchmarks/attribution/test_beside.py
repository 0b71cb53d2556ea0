"""What may be said of two walls follows from what differs between them."""

from dataclasses import replace

import pytest

from benchmarks.attribution.beside import BESIDE, HISTORY, PAIR, beside

from .test_pair import sides


def test_two_engines_of_one_window_are_a_pair():
    record, ours, theirs = sides()
    found = beside(record, ours, record, theirs)
    assert (found.kind, found.same_work, found.clauses) == (PAIR, True, ())
    assert [item.what for item in found.different] == ["engine"]


def test_other_gates_of_one_engine_in_one_window_are_a_pair():
    record, ours, _ = sides()
    found = beside(record, ours, record, replace(ours, gates={"mmq": True, "bt": True}))
    assert found.kind == PAIR
    assert ("gates", "bt=True, mmq=True") in [(item.what, item.b) for item in found.different]


def test_two_commits_of_one_engine_are_history_and_other_gates_are_said():
    record, ours, _ = sides()
    later = replace(record, commit="1" * 40, window=replace(record.window, id="w2"))
    found = beside(record, ours, later, replace(ours, gates={"mmq": True}))
    assert found.kind == HISTORY
    assert "Two windows" in found.clauses[0]
    assert "mmq=True" in found.clauses[1]


def test_two_machines_are_no_pair_and_no_regression():
    record, ours, _ = sides()
    other = replace(record, machine=replace(record.machine, name="elsewhere"), window=replace(record.window, id="w2"))
    found = beside(record, ours, other, ours)
    assert (found.kind, found.same_work) == (BESIDE, True)
    assert f"machine {record.machine.name} against elsewhere" in found.clauses[0]
    assert "no regression" in found.clauses[0]
    assert "same work" in found.clauses[1]


@pytest.mark.parametrize("what", ["nt", "weights"])
def test_other_work_forbids_milliseconds(what):
    record, ours, _ = sides()
    other = replace(record, model=replace(record.model, digest="9" * 64)) if what == "weights" else record
    found = beside(record, ours, other, replace(ours, nt=3325) if what == "nt" else ours)
    assert (found.kind, found.same_work) == (BESIDE, False)
    assert what in found.clauses[0]
    assert "milliseconds cannot be compared" in found.clauses[1]


def test_rows_hold_shares_and_costs_of_both_sides_and_of_classes_that_only_one_has():
    record, ours, theirs = sides()
    rows = {row.name: row for row in beside(record, ours, record, theirs).rows}
    assert rows["q6_K GEMM"].a.share_of_wall == pytest.approx(80 / 140)
    assert rows["q6_K GEMM"].a.cost.value == pytest.approx(81e-3 / 2)
    assert rows["q6_K GEMM"].b.cost.value == pytest.approx(20.5e-3 / 2)
    assert rows["rope"].a is None
    assert rows["rope"].b.cost is None
    assert beside(record, ours, record, replace(theirs, decomposition=None)).rows == ()


def test_sixteen_bit_weights_are_said_beside_quantised_ones():
    record, ours, theirs = sides()
    assert "16-bit" in beside(record, ours, record, replace(theirs, engine="transformers")).clauses[0]
