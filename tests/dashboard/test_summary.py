"""The answers of Overview, from records made for the case."""

from dataclasses import replace

from dashboard.summary import what_moved
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
