from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.attribution.macs import GMAC
from benchmarks.attribution.pair import PairError
from benchmarks.attribution.record import Ceiling, ClassTime, Decomposition
from benchmarks.attribution.recover import (
    BEST_OF_OURS,
    CEILING,
    COPY_ONLY,
    GAP,
    NONE_LEFT,
    PEER,
    ROUNDED_CEILING,
    CeilingError,
    ceiling_cost,
    queue,
)

from .test_pair import sides

MS = 1_000_000


def _measured():
    """Walls in ms: ours 200 with a gap of 30, theirs 100."""
    record, ours, theirs = sides()
    mine = (
        ClassTime("q6_K GEMM", 100 * MS, 2, macs=500 * GMAC, bytes=2 * 10**9, samples_ns=(99 * MS, 100 * MS, 102 * MS)),
        ClassTime("q4_K GEMM", 40 * MS, 2, macs=1000 * GMAC),
        ClassTime("norm", 10 * MS, 2, bytes=10**9),
        ClassTime("weight dequantise", 15 * MS, 2),
    )
    peers = (
        ClassTime("q6_K GEMM", 20 * MS, 2, macs=500 * GMAC),
        ClassTime("q4_K GEMM", 60 * MS, 2, macs=1000 * GMAC),
        ClassTime("norm", 4 * MS, 2),
    )
    wall = replace(
        ours, samples_ns=(200 * MS,), decomposition=Decomposition(200 * MS, 165 * MS, 5 * MS, {"host-late": 30 * MS}, mine)
    )
    theirs_apart = Decomposition(90 * MS, 84 * MS, 0, {"queued": 6 * MS}, peers)
    peer = replace(theirs, samples_ns=(100 * MS,), decomposition=theirs_apart)
    ceilings = (
        Ceiling("f16 GEMM", "TFLOP/s", 500.0),
        Ceiling("fp8 GEMM", "TFLOP/s", 1400.0),
        Ceiling("f32 GEMM", "GFLOP/s", 900.0),
        Ceiling("copy", "TB/s", 0.5),
    )
    return replace(record, walls=(wall, peer), ceilings=ceilings), wall, peer


def test_every_entry_has_its_target_its_price_and_what_it_would_give():
    record, wall, peer = _measured()
    entries = queue(record, wall, (record, peer))
    prices = {(entry.name, entry.target): round(entry.recoverable.value, 9) for entry in entries}
    assert prices == {
        ("q6_K GEMM", BEST_OF_OURS): 80.0,  # 500 GMAC at q4_K's 40 us
        ("q6_K GEMM", PEER): 80.0,
        ("q6_K GEMM", CEILING): 96.0,  # 500 GMAC at 4 us = 2 ms, but 2 GB at 0.5 TB/s = 4 ms
        ("q4_K GEMM", CEILING): 36.0,
        ("norm", CEILING): 8.0,
        ("norm", PEER): 6.0,
        (GAP, NONE_LEFT): 30.0,
        (COPY_ONLY, NONE_LEFT): 5.0,
    }
    assert [entry.recoverable.value for entry in entries] == sorted(prices.values(), reverse=True)
    first = entries[0]
    assert first.wall_if_won_ms == pytest.approx(104.0)
    assert first.tokens_per_second_if_won == pytest.approx(512 / 0.104)


def test_the_chain_can_be_checked_by_hand():
    record, wall, peer = _measured()
    entry = next(e for e in queue(record, wall, (record, peer)) if (e.name, e.target) == ("q6_K GEMM", BEST_OF_OURS))
    assert entry.chain == (
        "q6_K GEMM: 100.000 ms for 500.000 GMAC = 200.000 us per GMAC",
        "target: our q4_K GEMM, 40.000 us per GMAC",
        "at the target: 500.000 GMAC x 40.000 us = 20.000 ms",
        "recoverable: 100.000 - 20.000 = 80.000 ms (79.000 to 82.000 at 75.0%)",
        "wall if won: 200.000 - 80.000 = 120.000 ms",
        "512 tokens / 0.120000 s = 4266.7 tok/s",
    )


def test_a_class_that_beats_its_target_is_not_in_the_queue():
    record, wall, peer = _measured()
    assert not any((entry.name, entry.target) == ("q4_K GEMM", PEER) for entry in queue(record, wall, (record, peer)))


def test_fp8_prices_nothing_because_it_cannot_carry_exact_weights():
    assert ceiling_cost([Ceiling("fp8 GEMM", "TFLOP/s", 1400.0)], "q4_K GEMM") is None


def test_rounded_activations_are_a_target_of_their_own_for_quantised_products_alone():
    record, wall, _ = _measured()
    attention = ClassTime("attention", 50 * MS, 2, macs=100 * GMAC)
    wall = replace(wall, decomposition=replace(wall.decomposition, classes=(*wall.decomposition.classes, attention)))
    record = replace(record, ceilings=(*record.ceilings, Ceiling("int8 GEMM", "TOP/s", 1000.0)))
    found = {(entry.name, entry.target_name): entry.recoverable.value for entry in queue(record, wall)}
    rounded = "measured int8 GEMM ceiling, activations rounded to 8 bits"
    # 1000 GMAC at 2 us are 2 ms, at 4 us 4 ms; q6_K is bound by its bytes either way.
    assert found["q4_K GEMM", rounded] == pytest.approx(38.0)
    assert found["q4_K GEMM", "measured f16 GEMM ceiling"] == pytest.approx(36.0)
    assert found["attention", "measured f16 GEMM ceiling"] == pytest.approx(50 - 0.4)
    assert ("attention", rounded) not in found
    kinds = {entry.target_name: entry.target for entry in queue(record, wall)}
    assert (kinds[rounded], kinds["measured f16 GEMM ceiling"]) == (ROUNDED_CEILING, CEILING)
    assert ceiling_cost([Ceiling("int8 GEMM", "TOP/s", 740.0)], "q4_K GEMM") is None


def test_activations_of_16_bits_carry_a_product_and_no_attention():
    rates = [Ceiling("f32 GEMM", "TFLOP/s", 0.2), Ceiling("int16 GEMM", "TOP/s", 0.4)]
    assert ceiling_cost(rates, "q4_K GEMM") == ("int16 GEMM", pytest.approx(5000))
    assert ceiling_cost(rates, "attention") == ("f32 GEMM", pytest.approx(10000))


def test_an_unknown_unit_is_refused():
    with pytest.raises(CeilingError, match="'furlongs'"):
        ceiling_cost([Ceiling("f16 GEMM", "furlongs", 1.0)], "q4_K GEMM")


def test_a_peer_of_another_length_is_refused():
    record, wall, peer = _measured()
    with pytest.raises(PairError):
        queue(record, wall, (record, replace(peer, nt=3325)))


def test_without_peer_and_ceilings_there_is_still_a_queue_and_without_a_decomposition_there_is_none():
    record, wall, _ = _measured()
    bare = queue(replace(record, ceilings=()), wall)
    assert [(entry.name, entry.target) for entry in bare] == [
        ("q6_K GEMM", BEST_OF_OURS), (GAP, NONE_LEFT), (COPY_ONLY, NONE_LEFT),
    ]  # fmt: skip
    assert queue(record, replace(wall, decomposition=None)) == ()


def test_a_wall_with_nothing_left_has_no_rate():
    record, wall, _ = _measured()
    only = Decomposition(30 * MS, 0, 0, {"unknown": 30 * MS}, ())
    entry = queue(record, replace(wall, samples_ns=(30 * MS,), decomposition=only))[0]
    assert entry.tokens_per_second_if_won is None
    assert entry.chain[-1] == "nothing of the wall is left"
