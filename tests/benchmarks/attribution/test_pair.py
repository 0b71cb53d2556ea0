from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.attribution.macs import GMAC
from benchmarks.attribution.pair import GEMM_TOTAL, PairError, pair, total_of
from benchmarks.attribution.record import ClassTime, Decomposition

from .test_record import example


def sides(nt=512, **classes_of_peer):
    """A record with our wall, and a peer's wall of the same window."""
    record = example()
    ours = (
        ClassTime("q6_K GEMM", 80, 2, macs=2 * GMAC, samples_ns=(80, 82, 81)),
        ClassTime("q4_K GEMM", 40, 2, macs=4 * GMAC, samples_ns=(40, 42, 41)),
        ClassTime("norm", 10, 2),
        ClassTime("weight dequantise", 5, 2),
    )
    theirs = (
        ClassTime("q6_K GEMM", 20, 2, macs=2 * GMAC, samples_ns=(20, 21)),
        ClassTime("q4_K GEMM", 20, 2, macs=4 * GMAC),
        ClassTime("norm", 5, 2),
        ClassTime("rope", 1, 1),
    )
    wall = replace(record.walls[0], nt=nt, samples_ns=(140, 141, 142), decomposition=_whole(ours))
    peer = replace(wall, engine="llama.cpp", samples_ns=(70, 71, 69), decomposition=_whole(theirs))
    return replace(record, walls=(wall, peer)), wall, peer


def _whole(classes):
    total = sum(item.ns for item in classes)
    return Decomposition(total + 5, total, 2, {"host-late": 3}, classes)


def test_ratios_are_of_costs_and_the_total_is_of_all_products():
    record, ours, theirs = sides()
    found = pair(record, ours, record, theirs)
    by_name = {item.name: item for item in found.classes}
    assert list(by_name) == ["q6_K GEMM", "q4_K GEMM", "norm"]
    assert by_name["q6_K GEMM"].a_cost.value == pytest.approx(81e-3 / 2)
    assert by_name["q6_K GEMM"].ratio.value == pytest.approx(81 / 20.5)
    assert by_name["norm"].ratio.value == 2.0
    assert by_name["norm"].a_cost is None
    assert found.gemm_total.name == GEMM_TOTAL
    assert found.gemm_total.ratio.value == pytest.approx((81 + 41) / 40)
    assert found.wall_ratio.value == pytest.approx(141 / 70)
    assert found.wall_ratio.interval.low == pytest.approx(140 / 71)
    assert (found.only_a, found.only_b) == (("weight dequantise",), ("rope",))
    assert found.gmac_check.passed is True
    assert (found.a, found.b, found.nt) == ("minfer", "llama.cpp", 512)


def test_classes_that_ran_no_time_have_no_ratio():
    record, ours, theirs = sides()
    empty = replace(theirs, decomposition=_whole((ClassTime("norm", 0, 1),)))
    found = pair(record, ours, record, empty)
    assert (found.classes, found.gemm_total) == ((), None)


def test_without_a_decomposition_the_walls_are_still_a_pair():
    record, ours, theirs = sides()
    found = pair(record, ours, record, replace(theirs, decomposition=None))
    assert (found.classes, found.gmac_check) == ((), None)
    assert found.wall_ratio.value == pytest.approx(141 / 70)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record, wall: (record, replace(wall, nt=3325)), "nt 512 of minfer against 3325 of llama.cpp"),
        (
            lambda record, wall: (replace(record, model=replace(record.model, digest="0" * 64)), wall),
            "weights ffffffffffff of minfer against 000000000000 of llama.cpp",
        ),
        (
            lambda record, wall: (replace(record, window=replace(record.window, id="w2")), wall),
            "window w1 of minfer against w2 of llama.cpp",
        ),
        (
            lambda record, wall: (replace(record, machine=replace(record.machine, name="h200")), wall),
            "machine epyc-2core of minfer against h200 of llama.cpp",
        ),
    ],
)
def test_what_is_not_a_pair_is_refused_naming_both_sides(change, says):
    record, ours, theirs = sides()
    with pytest.raises(PairError) as caught:
        pair(record, ours, *change(record, theirs))
    assert says in str(caught.value)


def test_a_total_keeps_samples_only_where_every_class_has_as_many():
    even = total_of([ClassTime("a", 1, 1, samples_ns=(1, 2)), ClassTime("b", 2, 1, samples_ns=(3, 5))], "total")
    assert (even.samples_ns, even.macs, even.ns) == ((4, 7), None, 3)
    uneven = total_of([ClassTime("a", 1, 1, macs=1, samples_ns=(1, 2)), ClassTime("b", 2, 1, macs=2)], "total")
    assert (uneven.samples_ns, uneven.macs) == ((), 3)
    assert total_of([], "total") is None
