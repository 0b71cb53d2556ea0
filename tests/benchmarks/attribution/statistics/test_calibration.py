"""What a calibration says of its trials, and that what is stored reads back."""

import dataclasses

import pytest

from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.statistics.calibration import IDENTICAL, Calibration, Trial, read_calibrations


def trial(kind=IDENTICAL, passed=True, slower=(), pairs=6, seconds=2.0):
    return Trial(kind, 0.0 if kind == IDENTICAL else 0.03, passed, slower, pairs, seconds)


def calibration(*trials, time="2026-01-01T00:00:00+00:00"):
    return Calibration("c" * 40, time, "epyc-2core", "m:f", "CPU time", ("g/wall", "g/a", "g/b"), 0.02, 0.01, 0.05, 1, 60,
                       (0.5,), trials)  # fmt: skip


FOUND = calibration(
    trial(), trial(), trial(passed=False, slower=("g/a",)), trial(passed=False),
    trial("a", False, ("g/a", "g/wall"), 14, 5.0), trial("a", False, ("g/wall",), 20, 7.0), trial("b", True, (), 6, 2.0),
)  # fmt: skip


def test_rates():
    assert (FOUND.false_alarms.count, FOUND.false_alarms.trials) == (1, 4)
    assert FOUND.false_undecided.count == 1
    assert (FOUND.power().count, FOUND.power().trials) == (1, 3)
    assert FOUND.power("a").trials == 2
    assert (FOUND.missed().count, FOUND.missed("b").count) == (1, 1)
    assert FOUND.cost(FOUND.injected("a")) == (6.0, 17)


def test_no_trials_of_a_kind_are_no_rate():
    assert calibration(trial()).power() is None
    assert calibration(trial("a")).false_alarms is None


def test_what_is_stored_reads_back_oldest_first(tmp_path):
    folder = tmp_path / "calibration"
    folder.mkdir()
    later = dataclasses.replace(FOUND, time="2026-02-01T00:00:00+00:00")
    (folder / "a.jsonl").write_text(later.to_json() + "\n")
    (folder / "b.jsonl").write_text(FOUND.to_json() + "\n\n")
    assert read_calibrations(tmp_path) == [FOUND, later]
    assert read_calibrations(tmp_path / "nowhere") == []


@pytest.mark.parametrize("line", ["{", "[]", '{"format":"x","version":1}', FOUND.to_json().replace('"pairs"', '"pears"')])
def test_a_bad_line_is_named(tmp_path, line):
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / "x.jsonl").write_text(FOUND.to_json() + "\n" + line + "\n")
    with pytest.raises(UserFacingError, match=r"x\.jsonl:2: not a calibration"):
        read_calibrations(tmp_path)
