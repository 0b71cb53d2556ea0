"""The answers of Overview, from records made for the case."""

from dataclasses import replace

import pandas as pd

from benchmarks.attribution.history import Commit
from benchmarks.attribution.record import Ceiling, ClassTime, Decomposition
from benchmarks.attribution.recover import ROUNDED_CEILING
from dashboard.commits import Known
from dashboard.examine import which_commit
from dashboard.summary import fresh, what_moved, what_next
from tests.benchmarks.attribution.test_record import example


def record(commit, walls_ns):
    """One record whose engine took these times (ns) at each length, ten samples within 1 %."""
    found = example()
    wall = found.walls[0]
    walls = []
    for nt, ns in walls_ns.items():
        part = replace(
            wall.decomposition, wall_ns=ns, busy_ns=ns, copy_ns=0, gap_ns={},
            classes=(replace(wall.decomposition.classes[0], ns=ns, samples_ns=(ns, ns + ns // 200), splits=()),),
        )  # fmt: skip
        samples = tuple(ns + i * ns // 1000 for i in range(10))
        walls.append(replace(wall, nt=nt, samples_ns=samples, traced_ns=(ns, ns + ns // 200), decomposition=part))
    window = replace(found.window, id=f"window of {commit}")
    return replace(found, commit=commit * 40, walls=tuple(walls), window=window)


def answer(before, after, nt):
    a, b = record("a", before), record("b", after)
    shown = [next((one, wall) for wall in one.walls if wall.nt == nt) for one in (a, b)]
    return what_moved(*shown)[0]


def test_a_move_at_a_length_that_is_not_shown_is_said():
    found = answer({512: 20_000_000, 3325: 80_000_000}, {512: 15_000_000, 3325: 80_000_000}, 3325)
    assert found.text.startswith("No difference that the samples resolve")
    assert "At nt 512: Faster: bbbbbbbb takes 5" in found.text
    assert found.state == "good"


def test_a_loss_at_one_length_outweighs_a_gain_at_another():
    found = answer({512: 20_000_000, 3325: 80_000_000}, {512: 22_000_000, 3325: 70_000_000}, 3325)
    assert found.text.startswith("Faster")
    assert "At nt 512: Slower" in found.text
    assert found.state == "bad"


def test_one_length_alone_says_nothing_of_others():
    assert "At nt" not in answer({512: 20_000_000}, {512: 15_000_000}, 512).text


def known(*paths):
    """A history, newest first, of commits that changed these paths; the last one is 'a'."""
    ids = [*(f"{place:x}" * 40 for place in range(1, len(paths))), "a" * 40]
    time = "2026-01-01T00:00:00+00:00"
    commits = tuple(Commit(one, (), time, "s", "s", tuple(of)) for one, of in zip(ids, paths, strict=True))
    return Known({commit.id: commit for commit in commits}, commits)


def on(backend):
    found = record("a", {512: 20_000_000})
    return replace(found, walls=tuple(replace(wall, backend=backend) for wall in found.walls))


def test_a_record_stays_fresh_until_something_changes_that_it_ran():
    said = fresh(on("cuda"), known([], ["docs/a.md", "kernels/cpu/mmv.c"], ["kernels/add.cu"]))
    assert said.text.endswith("; the 2 later commits changed nothing of the engine that it ran")
    assert said.state == "good"
    said = fresh(on("cuda"), known(["README.md"], ["kernels/mmv.cu"], []))
    assert (said.state, said.text.split("; ")[1]) == (
        "bad", "1 of the 2 later commits changed the engine and is not measured on this machine",
    )  # fmt: skip
    said = fresh(on("numpy"), known(["kernels/cpu/mmv.c"], []))
    assert said.text.endswith("the one later commit changed the engine and is not measured on this machine")
    assert fresh(on("cuda"), known([])).text.endswith("is the newest commit")
    assert fresh(on("cuda"), Known({}, ())).state == "unsure"


def walls(*milliseconds):
    commits = [f"{i:040x}" for i in range(len(milliseconds))]
    return pd.DataFrame({"commit": commits, "wall_ns": [1e6 * ms for ms in milliseconds]})


COMMITS = pd.DataFrame({"commit": [f"{i:040x}" for i in range(20)], "subject": [f"Step {i}" for i in range(20)]})


def test_a_step_that_the_chart_shows_plainly_is_not_called_noise():
    found = which_commit([], COMMITS, walls(800, 140, 80, 79, 78, 77, 78, 77, 78, 77))
    assert "the largest step between neighbours, not tested, came with 00000000 (Step 1): 5.71 times as fast" in found.text
    assert found.state == "unsure"
    slower = which_commit([], COMMITS, walls(70, 77, 77.5))
    assert "(Step 1): 1.1 times as slow" in slower.text
    assert "at least" in slower.text


def test_a_quiet_history_is_within_the_noise():
    found = which_commit([], COMMITS, walls(*[77, 78, 79] * 5))
    assert (found.state, found.text.endswith("what differs is within the noise")) == ("good", True)
    assert which_commit([], COMMITS, walls(77)).state == "unsure"


def test_rounded_activations_are_not_what_comes_next_while_something_exact_is_left():
    found = example()
    wall = found.walls[0]
    attention = ClassTime("attention", ns=40, launches=1, macs=10)
    wall = replace(wall, decomposition=replace(wall.decomposition, classes=(*wall.decomposition.classes, attention)))
    ceilings = (Ceiling("f16 GEMM", "TFLOP/s", 1e3), Ceiling("int8 GEMM", "TOP/s", 1e5))
    exact, entries = what_next(replace(found, ceilings=ceilings), wall)
    assert entries[0].target == ROUNDED_CEILING
    assert "activations rounded" not in exact.text
    alone, _ = what_next(replace(found, ceilings=ceilings[1:]), replace(wall, decomposition=ALONE))
    assert "activations rounded to 8 bits" in alone.text


ALONE = Decomposition(80, 80, 0, {}, (ClassTime("q4_K GEMM", ns=80, launches=1, macs=10**6),))
