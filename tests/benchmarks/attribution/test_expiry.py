from __future__ import annotations

from dataclasses import replace

from benchmarks.attribution.expiry import LISTED_COMMITS, expiries
from benchmarks.attribution.history import Commit

from .test_record import example


def commit(number: int, *paths: str) -> Commit:
    return Commit(str(number) * 40, (str(number - 1) * 40,), "2026-11-29T00:00:00Z", f"Step {number}", "", paths)


def record(number: int, **changes):
    found = example()
    walls = tuple(replace(wall, backend="cuda") for wall in found.walls)
    return replace(found, commit=str(number) * 40, **{"walls": walls, **changes})


def whats(expiry):
    return [reason.what for reason in expiry.reasons]


HISTORY = (
    commit(5, "docs/method.md"),
    commit(4, "kernels/gemm.cu", "minfer/backends/cuda.py"),
    commit(3, "minfer/gates.py"),
    commit(2, "README.md"),
    commit(1, "kernels/gemm.cu"),
)


def test_a_later_change_of_a_kernel_or_a_gate_expires_and_of_a_document_does_not():
    old, same_day, new = expiries([record(1), record(3), record(5)], HISTORY)
    assert whats(old) == ["gate", "kernel"]
    assert old.reasons[1].detail == "444444444444 Step 4"
    assert whats(same_day) == ["kernel"]
    assert (new.expired, old.expired) == (False, True)
    assert not expiries([record(4)], HISTORY)[0].expired


def test_many_commits_are_named_in_part():
    history = tuple(commit(number, "kernels/gemm.cu") for number in (6, 5, 4, 3, 2, 1))
    detail = expiries([record(1)], history)[0].reasons[0].detail
    assert detail.startswith("222222222222 Step 2; ")
    assert detail.endswith(f"; and {5 - LISTED_COMMITS} more")


def test_gates_model_driver_and_instrument_are_read_from_the_newest_record_of_the_same_machine():
    old = record(4)
    wall = replace(old.walls[0], gates={"mmq": False, "threads": 2})
    new = record(
        5,
        walls=(wall,),
        machine=replace(old.machine, driver="590"),
        model=replace(old.model, digest="e" * 64),
        instrument_version=2,
    )
    found = expiries([old, new], HISTORY)
    assert whats(found[0]) == ["model", "driver", "instrument", "gate"]
    assert found[0].reasons[3].detail == "minfer @512: mmq=True, threads=2, today mmq=False, threads=2"
    assert found[1].reasons == ()


def test_another_machine_says_nothing_of_this_one():
    elsewhere = record(5, machine=replace(example().machine, name="h200", driver="590"))
    assert not expiries([record(4), elsewhere], HISTORY)[0].expired


def test_a_commit_outside_the_history_has_only_its_records_to_go_by():
    old = record(9, instrument_version=1)
    assert whats(expiries([old, record(5, instrument_version=2)], HISTORY)[0]) == ["instrument"]


def test_the_last_line_of_a_commit_measured_twice_speaks_for_today():
    first, again = record(5), record(5, instrument_version=2)
    assert [whats(item) for item in expiries([first, again], HISTORY)] == [["instrument"], []]


def test_what_the_measured_backend_never_runs_expires_nothing():
    history = (commit(3, "kernels/cpu/mmv.c", "kernels/README.md"), commit(2, "kernels/mmv.cu"), commit(1, "x"))
    on_gpu, on_cpu = record(1), replace(example(), commit="1" * 40)
    assert on_cpu.walls[0].backend == "numpy"
    assert [reason.detail for reason in expiries([on_gpu], history)[0].reasons] == ["222222222222 Step 2"]
    assert [reason.detail for reason in expiries([on_cpu], history)[0].reasons] == ["333333333333 Step 3"]


def test_one_commit_alone_gets_the_answer_that_it_has_among_all():
    records = [record(1), record(3), record(3, instrument_version=2), record(5)]
    everyone = expiries(records, HISTORY)
    assert expiries(records, HISTORY, only="3" * 40) == everyone[1:3]
    assert expiries(records, HISTORY, only="9" * 40) == ()
