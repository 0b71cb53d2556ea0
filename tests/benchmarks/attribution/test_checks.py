from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.attribution import checks
from benchmarks.attribution.record import ClassTime, Conditions, Decomposition, Quarantined

from .test_record import example

GOOD = Decomposition(100, 97, 1, {"host-late": 2}, (ClassTime("norm", 97, 3),))


def test_a_sound_decomposition_passes_every_rule():
    assert [check.passed for check in checks.decomposition_checks(GOOD)] == [True] * 4


@pytest.mark.parametrize(
    "broken", [replace(GOOD, wall_ns=101), replace(GOOD, busy_ns=96), replace(GOOD, copy_ns=2), replace(GOOD, gap_ns={})]
)
def test_closure_is_exact(broken):
    assert checks.closure(broken).passed is False


def test_negative_time_does_not_close():
    odd = replace(GOOD, classes=(ClassTime("norm", 100, 3), ClassTime("rope", -3, 1)))
    assert (checks.closure(odd).passed, checks.closure(odd).detail) == (False, "negative time in rope")


def test_a_wide_gap_fails_with_its_causes():
    check = checks.busy_against_wall(replace(GOOD, wall_ns=110, gap_ns={"host-late": 8, "queued": 0, "unknown": 4}))
    assert (check.passed, check.value) == (False, 12 / 110)
    assert "host-late" in check.detail
    assert "queued" not in check.detail
    assert checks.busy_against_wall(replace(GOOD, wall_ns=0)).passed is None


def test_the_tracers_cost_is_of_medians():
    assert checks.tracer_cost([100, 101, 900], [103, 102, 104]).value == pytest.approx(103 / 101 - 1)
    assert checks.tracer_cost([100], [104]).passed is False
    assert checks.tracer_cost([], [104]).passed is None


def test_foreign_processes_and_throttling_fail_and_a_few_quarantined_samples_do_not():
    quiet = Conditions("before", "2026-11-29T00:00:00Z")
    lost = (Quarantined(1, 5, "throttle"),)
    assert checks.quiet_machine([quiet], 5, ()).passed is True
    assert checks.quiet_machine([quiet], 5, lost).passed is True
    assert checks.quiet_machine([quiet], 1, lost).passed is False
    assert checks.quiet_machine([], 5, ()).passed is None
    busy = replace(quiet, when="during", foreign_processes=("python 17",), throttle_reasons=("power cap",))
    check = checks.quiet_machine([quiet, busy], 5, ())
    assert (check.passed, check.value, check.detail) == (False, 2.0, "during: python 17; during: power cap")


def test_unclassified_names_are_listed_in_part():
    names = tuple(f"kernel_{number}" for number in range(11))
    odd = replace(GOOD, classes=(ClassTime("norm", 95, 3), ClassTime("unclassified", 2, 11)), unclassified=names)
    check = checks.unclassified(odd)
    assert (check.passed, check.value) == (False, 2 / 97)
    assert check.detail.endswith("kernel_7; and 3 more")


def test_left_out_launches_fail():
    assert checks.timestamps_collected(replace(GOOD, not_collected=2)).passed is False


def test_the_baseline_is_the_fastest_ubatch_and_one_alone_is_not_a_best():
    record = example()
    ours = record.walls[0]
    slow = replace(ours, engine="llama.cpp", ubatch=512, samples_ns=(20, 22, 21))
    fast = replace(slow, ubatch=2048, samples_ns=(19, 30, 18))
    assert checks.best_wall([ours, slow, fast], "llama.cpp", 512) == fast
    assert checks.best_wall([ours], "llama.cpp", 512) is None
    both = checks.record_checks(replace(record, walls=(ours, slow, fast)))
    assert [(check.name, check.passed) for check in both] == [("peer at its best: llama.cpp @512", True)]
    assert checks.record_checks(replace(record, walls=(ours, slow)))[0].passed is False
    assert checks.record_checks(record) == ()


def test_a_wall_is_checked_with_and_without_its_decomposition():
    wall = example().walls[0]
    assert {check.name: check.passed for check in checks.wall_checks(wall)} == {
        "machine to itself": None, "tracer's own cost": True, "closure": True, "gap share of wall": False,
        "unclassified share of busy": True, "timestamps collected": True,
    }  # fmt: skip
    assert len(checks.wall_checks(replace(wall, decomposition=None))) == 1


def test_a_faster_gate_beside_the_engine_does_not_speak_for_it():
    ours = example().walls[0]
    own = replace(ours, gates={"dense": False}, samples_ns=(100, 100))
    again = replace(own, ubatch=64, samples_ns=(99, 99))
    dense = replace(ours, gates={"dense": True}, samples_ns=(70, 70))
    assert checks.best_wall([own, dense], "minfer", ours.nt) is own
    # Two walls of the same gates, say at two ubatches: the faster one.
    assert checks.best_wall([own, dense, again], "minfer", ours.nt) is again
