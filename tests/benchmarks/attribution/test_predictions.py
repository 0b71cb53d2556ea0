from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.attribution.history import Commit
from benchmarks.attribution.macs import GMAC
from benchmarks.attribution.predictions import (
    HIT,
    MISS,
    UNMEASURED,
    Outcome,
    Prediction,
    calibration,
    judge,
    outcomes,
    parse_predictions,
)
from benchmarks.attribution.record import ClassTime, Decomposition
from benchmarks.attribution.spread import Figure, Interval

from .test_record import example


@pytest.mark.parametrize(
    ("line", "subject", "change", "unit", "nt"),
    [
        ("Predicts: q6_K GEMM -900 ms @3325", "q6_K GEMM", -900.0, "ms", 3325),
        ("Predicts: q4_K GEMM -2.5 us/GMAC @512", "q4_K GEMM", -2.5, "us/GMAC", 512),
        ("Predicts: tok/s +9.7 % @3325", "tok/s", 9.7, "%", 3325),
        ("Predicts: tok/s +900 tok/s @3325", "tok/s", 900.0, "tok/s", 3325),
        ("Predicts: wall -120ms @ 512", "wall", -120.0, "ms", 512),
        ("Predicts: gap -0.7 ms @512", "gap", -0.7, "ms", 512),
        ("Predicts: activation quantise \u221231.6 ms @3325", "activation quantise", -31.6, "ms", 3325),
        ("Predicts: attention -1 µs/GMAC @7", "attention", -1.0, "us/GMAC", 7),
    ],
)
def test_trailers_that_predict(line, subject, change, unit, nt):
    good, bad = parse_predictions("c", f"Title\n\nBody.\n\n{line}\nSigned-off-by: x")
    assert good == (Prediction("c", subject, change, unit, nt),)
    assert bad == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Predicts: q6_K GEMM -900 ms", "names no prompt length"),
        ("Predicts: q6_K GEMM 900 ms @3325", "signed change"),
        ("Predicts: q6_K GEMM -900 furlongs @3325", "ms, us/GMAC, tok/s, %"),
        ("Predicts:", "names no prompt length"),
        ("Predicts: q6_K GEMM -0 ms @3325", "predicts nothing"),
        ("Predicts: q6_K GEMM -9 ms @0", "predicts nothing"),
        ("Predicts: q6_K GEMM +9 tok/s @5", "of the whole prefill"),
        ("Predicts: tok/s +9 ms @5", "not measured in ms"),
        ("Predicts: wall -9 us/GMAC @5", "not measured in us/GMAC"),
        ("Predicts: gap -9 us/GMAC @5", "not measured in us/GMAC"),
        ("predicts: wall -9 ms @5", "at the start of the line"),
        ("  Prediction: wall -9 ms @5", "at the start of the line"),
    ],
)
def test_bad_trailers_are_reported_by_line(line, reason):
    good, bad = parse_predictions("c", f"Title\n\n{line}\nPredicts: wall -1 ms @5")
    assert len(good) == 1
    assert [(item.line, item.commit) for item in bad] == [(3, "c")]
    assert reason in bad[0].reason


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (Figure(-100.0), HIT),
        (Figure(-50.0), HIT),
        (Figure(-200.0), HIT),
        (Figure(-49.0), MISS),
        (Figure(-201.0), MISS),
        (Figure(100.0), MISS),
        (Figure(0.0), MISS),
        (Figure(-40.0, Interval(-120.0, -5.0, 0.9)), HIT),
        (Figure(-40.0, Interval(-120.0, 5.0, 0.9)), MISS),
    ],
)
def test_a_hit_has_the_sign_and_lies_within_a_factor_two_or_in_the_interval(measured, verdict):
    assert judge(Prediction("c", "wall", -100.0, "ms", 5), measured) == verdict


MS = 1_000_000


def _record(commit, wall_ms, class_ms, **changes):
    record = example()
    item = ClassTime("q6_K GEMM", class_ms * MS, 2, macs=10 * GMAC)
    whole = Decomposition(wall_ms * MS, class_ms * MS, 0, {"unknown": (wall_ms - class_ms) * MS}, (item,))
    wall = replace(record.walls[0], samples_ns=(wall_ms * MS,), decomposition=whole)
    return replace(record, commit=commit, walls=(wall,), **changes)


def _history(*messages):
    """Newest first; commit ids c0 (oldest), c1, ..."""
    commits = [
        Commit(f"c{number}", (f"c{number - 1}",) if number else (), "", message.split("\n")[0], message, ())
        for number, message in enumerate(messages)
    ]
    return tuple(reversed(commits))


def test_predictions_are_joined_with_the_nearest_measured_ancestor():
    texts = ("q6_K GEMM -40 ms", "q6_K GEMM -4000 us/GMAC", "wall -20 %", "tok/s +1280 tok/s", "tok/s +5 %", "rope -1 ms")
    trailers = "\n".join(f"Predicts: {text} @512" for text in texts)
    history = _history("Base", "Unmeasured between", f"Change\n\n{trailers}")
    records = [_record("c0", 200, 100), _record("c2", 160, 50)]
    joined, bad = outcomes(history, records, machine="epyc-2core")
    assert bad == ()
    assert [round(item.measured.value, 3) if item.measured else None for item in joined] == [
        -50.0, -5000.0, -20.0, 640.0, 25.0, None,
    ]  # fmt: skip
    assert [item.verdict for item in joined] == [HIT, HIT, HIT, HIT, MISS, UNMEASURED]
    assert joined[0].detail == "against c0"
    assert joined[5].detail == "rope is not known in ms on both sides"
    assert calibration(joined).median_ratio == pytest.approx(1.25)


def test_a_gap_is_all_of_the_wall_in_which_the_device_did_nothing():
    history = _history("Base", "Change\n\nPredicts: gap -60 ms @512\nPredicts: gap -50 % @512")
    joined, _ = outcomes(history, [_record("c0", 200, 100), _record("c1", 140, 100)], machine="epyc-2core")
    assert [item.measured for item in joined] == [Figure(-60.0), Figure(-60.0)]
    assert [item.verdict for item in joined] == [HIT, HIT]
    joined, _ = outcomes(history, [_record("c0", 100, 100), _record("c1", 140, 100)], machine="epyc-2core")
    assert [item.verdict for item in joined] == [MISS, UNMEASURED]
    assert joined[1].detail == "gap was 0 before: a change has no share of it"


def test_why_a_prediction_was_not_measured():
    history = _history("Base", "Change\n\nPredicts: wall -20 ms @512\nPredicts: wall -20 ms @9\nPredicts: wall")
    other = replace(example().model, digest="e" * 64)
    cases = {
        "the commit has no record": [_record("c0", 200, 100)],
        "no ancestor has a record of this model": [_record("c0", 200, 100, model=other), _record("c1", 150, 100)],
    }
    for detail, records in cases.items():
        joined, bad = outcomes(history, records, machine="epyc-2core")
        assert [(item.verdict, item.detail) for item in joined] == [(UNMEASURED, detail)] * 2
        assert [item.line for item in bad] == [5]
    both = [_record("c0", 200, 100), _record("c1", 150, 100)]
    assert outcomes(history, both, machine="epyc-2core")[0][1].detail == "not measured at 9 tokens on both sides"
    assert outcomes(history, both, machine="h200")[0][0].detail == "the commit has no record"


def test_of_several_records_the_last_that_can_be_compared_counts():
    other = replace(example().model, digest="e" * 64)
    history = _history("Base", "Change\n\nPredicts: wall -20 ms @512")
    records = [_record("c0", 200, 100), _record("c1", 170, 100), _record("c1", 180, 100), _record("c1", 5, 2, model=other)]
    joined, _ = outcomes(history, records, machine="epyc-2core")
    assert (joined[0].verdict, joined[0].measured.value) == (HIT, -20.0)


def test_another_window_is_said():
    window = replace(example().window, id="w2")
    history = _history("Base", "Change\n\nPredicts: wall -20 ms @512")
    joined, _ = outcomes(history, [_record("c0", 200, 100), _record("c1", 150, 100, window=window)], machine="epyc-2core")
    assert joined[0].detail == "against c0, in another window"


def test_calibration_counts_wrong_signs_apart():
    prediction = Prediction("c", "wall", -100.0, "ms", 5)
    joined = [
        Outcome(prediction, HIT, Figure(-50.0), ""),
        Outcome(prediction, MISS, Figure(30.0), ""),
        Outcome(prediction, UNMEASURED, None, ""),
    ]
    found = calibration(joined)
    assert (found.hits, found.misses, found.unmeasured, found.wrong_sign) == (1, 1, 1, 1)
    assert found.median_ratio == pytest.approx(0.5)
    assert calibration([]).median_ratio is None
