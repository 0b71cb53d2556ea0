"""When pairs are added, in which order, and when it stops: with pairs made up and a clock of our own."""

import random

import pytest

from benchmarks.attribution.statistics.paired import Rule
from benchmarks.gate import sampling
from benchmarks.gate.exits import MachineUnfitError, NothingMeasuredError
from benchmarks.gate.replicate import Pair


class Bench:
    """Makes pairs of seeded noise; each takes ten seconds on its clock."""

    def __init__(self, slowdown=0.0, spread=0.002, spoiled=()):
        self.random, self.slowdown, self.spread, self.spoiled = random.Random(1), slowdown, spread, set(spoiled)
        self.now, self.firsts, self.saved, self.lines, self.pairs = 0.0, [], [], [], []

    def measure(self, first):
        index = len(self.firsts)
        self.firsts.append(first)
        self.now += 10
        base = {"g/wall": self.random.lognormvariate(0, self.spread), "g/a": 0.5}
        head = {"g/wall": (1 + self.slowdown) * self.random.lognormvariate(0, self.spread), "g/a": 0.5}
        return Pair(base, head, first, 10.0, "throttled: x" if index in self.spoiled else "")

    def collect(self, budget=1e9, patterns=(), most=None):
        save = lambda pairs: self.saved.append(len(pairs))  # noqa: E731
        sampling.collect(self.pairs, self.measure, Rule(), patterns, budget, save, self.lines.append, most, lambda: self.now)
        return self


def test_identical_arms_are_settled_at_the_first_look_in_abba_order():
    bench = Bench().collect()
    assert bench.firsts == ["base", "head"] * 3
    assert bench.saved == [1, 2, 3, 4, 5, 6]
    assert bench.lines[-1].endswith("all decided")


def test_a_quarantined_pair_is_taken_again_in_the_same_order():
    bench = Bench(spoiled=[1]).collect()
    assert bench.firsts == ["base", "head", "head", "base", "head", "base", "head"]
    assert len(sampling.accepted(bench.pairs)) == 6


def test_no_pair_is_begun_that_the_budget_cannot_hold():
    bench = Bench(spread=0.5).collect(budget=35)
    assert len(bench.pairs) == 3
    assert bench.now <= 35


def test_a_regression_stops_at_once_where_nothing_else_is_open():
    bench = Bench(slowdown=0.2).collect()
    assert len(bench.pairs) == 10
    assert "slower: g/wall; all decided" in bench.lines[-1]


def test_a_regression_waits_only_two_more_looks_for_what_stays_open():
    bench = Bench(slowdown=0.2)
    original = bench.measure

    def measure(first):
        pair = original(first)
        return Pair(pair.base, {**pair.head, "g/a": 0.5 * bench.random.lognormvariate(0, 0.4)}, first, 10.0)

    bench.measure = measure
    bench.collect()
    assert len(bench.pairs) == 16


def test_a_machine_that_keeps_spoiling_pairs_is_given_up():
    with pytest.raises(MachineUnfitError, match="6 of 6 pairs quarantined, the last one: throttled: x"):
        Bench(spoiled=range(99)).collect()


def test_a_few_spoiled_pairs_are_borne():
    assert len(sampling.accepted(Bench(spread=0.3, spoiled=range(5)).collect(most=20).pairs)) == 20


def test_gaps_have_a_floor_of_their_own_which_stays_with_the_first_pairs_of_them():
    pair = Pair({"g/wall": 2.0, "g/gaps": 0.1, "g/a": 0.1}, {"g/wall": 2.0, "g/gaps": 0.1, "g/a": 0.1}, "base", 1.0)
    found = {one.name: sampling.first_pairs(one, 6) for one in sampling.series_of([pair] * 8)}
    margins = {one.name: one.margin for one in sampling.paired.judge(list(found.values()), Rule())}
    # Half of the wall's margin is 20 ms, a twentieth of it 2 ms, each of 100.
    assert margins == pytest.approx({"g/wall": 0.02, "g/gaps": 0.2, "g/a": 0.02})
    assert len(found["g/gaps"].base) == 6


def test_a_class_absent_in_one_process_took_no_time_and_the_wall_is_its_groups():
    pairs = [Pair({"g/wall": 2.0, "g/a": 1.0, "lone": 1.0}, {"g/wall": 2.0, "lone": 1.0}, "base", 1.0)]
    found = {one.name: one for one in sampling.series_of(pairs)}
    assert found["g/a"].head == (0.0,)
    assert found["g/a"].wall == (2.0,)
    assert found["g/wall"].wall is None
    assert found["lone"].wall is None
    assert [one.name for one in sampling.series_of(pairs, ["g/*"])] == ["g/wall", "g/a"]
    with pytest.raises(NothingMeasuredError, match=r"--metric x\*: matches none of g/wall, g/a, lone"):
        sampling.series_of(pairs, ["x*"])
