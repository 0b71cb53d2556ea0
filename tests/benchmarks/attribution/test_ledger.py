from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.ledger import (
    LOST,
    NEW,
    NOT_PUBLISHED,
    TAX,
    UNRESOLVED,
    VANISHED,
    WON,
    ledger,
    ledger_of_records,
)
from benchmarks.attribution.pair import PairError
from benchmarks.attribution.record import ClassTime, Decomposition

from .test_pair import sides


def whole(gap=0, copy=0, **classes):
    items = tuple(ClassTime(name, ns, 1) for name, ns in classes.items())
    busy = sum(classes.values())
    return Decomposition(busy + gap + copy, busy, copy, {"host-late": gap}, items)


def kinds(result):
    return {line.name: line.kind for line in result.lines}


def test_growth_outside_the_target_is_its_hidden_tax():
    result = ledger(whole(gemm=1000, prepass=50, old=5, gap=20), whole(gemm=200, prepass=80, fresh=7, gap=20))
    assert kinds(result) == {
        "gemm": WON, "prepass": TAX, "old": VANISHED, "fresh": NEW, "gap: host-late": UNRESOLVED,
    }  # fmt: skip
    assert (result.target, result.won_ns, result.tax_ns, result.lost_ns) == ("gemm", 805.0, 37.0, 0.0)
    assert result.net_ns == 768.0
    assert result.target_net_ns == 800.0 - 37.0


def test_where_nothing_was_won_growth_is_a_loss():
    result = ledger(whole(gemm=100, norm=10), whole(gemm=120, norm=11, fresh=4))
    assert (result.target, result.target_net_ns, result.tax_ns, result.lost_ns) == (None, None, 0.0, 25.0)
    assert kinds(result)["gemm"] == LOST


def test_a_small_gain_beside_a_large_loss_makes_that_no_tax():
    before, after = whole(gemm=1000, norm=100, rope=50), whole(gemm=1500, norm=60, rope=50)
    found = ledger(before, after)
    assert (found.target, found.tax_ns, found.lost_ns, found.won_ns) == (None, 0.0, 500.0, 40.0)
    assert kinds(found)["gemm"] == LOST
    named = ledger(before, after, target="norm")
    assert (named.target, named.tax_ns, named.lost_ns, kinds(named)["gemm"]) == ("norm", 500.0, 0.0, TAX)
    assert ledger(before, whole(gemm=1400, norm=60, rope=50)).tax_ns == 400.0  # a tenth is enough


def test_a_named_target_that_grew_is_a_loss_not_a_tax():
    result = ledger(whole(gemm=100, norm=10), whole(gemm=120, norm=5), target="gemm")
    assert (kinds(result)["gemm"], result.target_net_ns) == (LOST, None)


_SIDES = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 1000), min_size=1)


@given(_SIDES, _SIDES, st.integers(0, 50), st.integers(0, 50))
def test_the_lines_add_up_to_the_walls(before, after, gap, copy):
    result = ledger(whole(gap, copy, **before), whole(copy, gap, **after))
    assert sum(line.change.value for line in result.lines) == pytest.approx(-result.net_ns)


def test_unequal_windows_are_compared_per_unit_of_work():
    result = ledger(whole(flash=680), whole(flash=600), units=(68, 60), unit="flash launch")
    assert (result.net_ns, kinds(result)) == (0.0, {"flash": UNRESOLVED})
    with pytest.raises(ValueError, match="positive"):
        ledger(whole(flash=1), whole(flash=1), units=(0, 1))


def test_a_change_inside_the_samples_spread_is_unresolved():
    def side(*samples):
        return Decomposition(samples[0], samples[0], 0, {}, (ClassTime("gemm", samples[0], 1, samples_ns=samples),))

    assert kinds(ledger(side(100, 90, 110), side(95, 85, 105)))["gemm"] == UNRESOLVED
    assert kinds(ledger(side(100, 99, 101), side(95, 94, 96)))["gemm"] == WON


def test_classes_that_a_source_did_not_tell_apart_are_not_vanished():
    result = ledger(
        whole(gemm=1000, q4=600, **{NOT_PUBLISHED: 300}), whole(gemm=200, fresh=5, **{NOT_PUBLISHED: 900})
    )
    assert {line.name: line.change.value for line in result.lines} == {"gemm": -800, NOT_PUBLISHED: 5}


def test_records_of_unlike_things_have_no_ledger():
    record, wall, peer = sides()
    later = replace(record, commit="1" * 40, window=replace(record.window, id="w2"))
    result = ledger_of_records(record, wall, later, wall)
    assert (result.net_ns, result.unit, len(result.notes)) == (0.0, "prefill of 512 tokens", 1)
    assert result.net.interval is not None
    for other in (replace(wall, nt=3325), peer):
        with pytest.raises(PairError, match="no ledger between 000000000000 and 111111111111"):
            ledger_of_records(record, wall, later, other)
    with pytest.raises(PairError, match="not decomposed"):
        ledger_of_records(record, wall, later, replace(wall, decomposition=None))
