"""Samples are taken ABBA, a disturbed round is set aside whole and taken again, and the bounds hold."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from benchmarks import interleave
from benchmarks.attribution.record import Conditions


class FakeProbe:
    """Says that the n-th watched sample was disturbed."""

    def __init__(self, disturbed=()):
        self.count = -1
        self.disturbed = set(disturbed)

    @contextmanager
    def watching(self, in_process=False):
        self.count += 1
        foreign = ("other processes used 50% of the cores",) if self.count in self.disturbed else ()
        yield SimpleNamespace(conditions=(Conditions("after", "t", foreign_processes=foreign),))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(interleave, "SETTLE_S", 0)


def arms(order):
    values = iter(range(1, 100))

    def arm(name):
        def take():
            order.append(name)
            return next(values)

        return take

    return {name: arm(name) for name in "AB"}


def test_the_order_is_abba():
    order = []
    rounds = interleave.interleaved(arms(order), 4, FakeProbe())
    assert "".join(order) == "ABBAABBA"
    assert [taken.ns for taken in rounds] == [{"A": 1, "B": 2}, {"B": 3, "A": 4}, {"A": 5, "B": 6}, {"B": 7, "A": 8}]


def test_a_disturbed_round_is_set_aside_whole_and_taken_again():
    rounds = interleave.interleaved(arms([]), 2, FakeProbe(disturbed=[1]))
    assert [taken.reason for taken in rounds] == ["B: not alone: other processes used 50% of the cores", None, None]
    clean, enough = interleave.usable(rounds, least=2)
    assert enough
    assert [taken.ns["A"] for taken in clean] == [4, 5]
    assert [(q.index, q.ns) for q in interleave.quarantined(rounds, "A")] == [(0, 1)]


def test_a_machine_that_is_never_quiet_ends_and_is_flagged():
    rounds = interleave.interleaved(arms([]), 3, FakeProbe(disturbed=range(99)))
    assert len(rounds) == 6
    used, enough = interleave.usable(rounds, least=3)
    assert not enough
    assert len(used) == 6


@pytest.mark.parametrize(
    ("warm_ns", "rounds"),
    [(1_000_000_000, 10), (8_000_000_000, 5), (60_000_000_000, 3), (1, 10)],
)
def test_rounds_fit_the_time_between_their_bounds(warm_ns, rounds):
    assert interleave.planned_rounds(warm_ns, most=10, least=3, seconds=40) == rounds
