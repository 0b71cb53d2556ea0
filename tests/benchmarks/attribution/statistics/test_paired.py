"""The decision's error rates by simulation with fixed seeds, on noise that breaks t intervals, and its corner cases."""

import math

import numpy as np
import pytest

from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.statistics import paired, sequential
from benchmarks.attribution.statistics.binomial import rate
from benchmarks.attribution.statistics.paired import PairedSeries, Rule, Verdict, judge

MOST_PAIRS = 34


def noise(kind, rng, n):
    """Log noise of the two arms of n pairs; shape [2, n]."""
    if kind == "gaussian":
        return rng.normal(0, 0.006, (2, n))
    if kind == "t3":
        return rng.standard_t(3, (2, n)) * 0.004
    if kind == "bimodal":
        return (rng.random((2, n)) < 0.3) * 0.08 + rng.normal(0, 0.002, (2, n))
    first = np.arange(n) % 2
    return np.stack([first, 1 - first]) * 0.01 + rng.normal(0, 0.003, (2, n))


def series(rng, kind, slowdown, name="wall", n=MOST_PAIRS):
    base, head = np.exp(noise(kind, rng, n))
    return PairedSeries(name, tuple(base), tuple(head * (1 + slowdown)))


def cut(one, n):
    return PairedSeries(one.name, one.base[:n], one.head[:n], one.wall and one.wall[:n])


def run_until_decided(all_series):
    """What the gate does: look, and stop at the first look at which nothing is open."""
    for pairs in sequential.looks_up_to(MOST_PAIRS):
        findings = judge([cut(one, pairs) for one in all_series], Rule(), with_detectable=False)
        if all(f.not_slower or f.verdict is Verdict.SLOWER for f in findings):
            break
    return findings


@pytest.mark.parametrize("kind", ["gaussian", "t3", "bimodal", "order"])
def test_the_false_alarm_rate_at_the_margin_itself_holds(kind):
    """The hardest case that must not be called SLOWER: three metrics, each slower by exactly the margin."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(100):
        findings = run_until_decided([series(rng, kind, paired.MARGIN, name) for name in "abc"])
        alarms += any(f.verdict is Verdict.SLOWER for f in findings)
    assert rate(alarms, 100).low <= paired.ALPHA


@pytest.mark.parametrize("kind", ["gaussian", "t3", "bimodal", "order"])
def test_a_slowdown_of_the_margin_passes_no_more_often_than_stated(kind):
    rng = np.random.default_rng(6)
    passed = sum(run_until_decided([series(rng, kind, paired.MARGIN)])[0].not_slower for _ in range(150))
    assert rate(passed, 150).low <= paired.BETA


@pytest.mark.parametrize("kind", ["gaussian", "t3", "order"])
def test_identical_arms_are_the_same_and_three_percent_is_found(kind):
    rng = np.random.default_rng(7)
    same = [run_until_decided([series(rng, kind, 0.0, n=MOST_PAIRS)])[0] for _ in range(60)]
    assert rate(sum(f.not_slower for f in same), 60).value >= 0.95
    assert not any(f.verdict is Verdict.SLOWER for f in same)
    slow = [run_until_decided([series(rng, kind, 0.04)])[0] for _ in range(60)]
    assert rate(sum(f.verdict is Verdict.SLOWER for f in slow), 60).value >= 0.9


def test_the_minimum_detectable_effect_is_found_as_often_as_it_says():
    rng = np.random.default_rng(8)
    pairs = 20
    detectable = np.median([judge([series(rng, "gaussian", 0, n=pairs)], Rule())[0].detectable for _ in range(100)])
    trials = [judge([series(rng, "gaussian", detectable, n=pairs)], Rule(), False)[0] for _ in range(300)]
    found = sum(finding.verdict is Verdict.SLOWER for finding in trials)
    assert rate(found, 300, 0.999).low <= paired.POWER
    assert found / 300 >= paired.POWER - 0.08


def test_many_metrics_name_the_one_that_moved():
    rng = np.random.default_rng(9)
    slow = {"c7"}
    findings = run_until_decided([series(rng, "order", 0.06 * (f"c{i}" in slow), f"c{i}") for i in range(12)])
    assert {f.name for f in findings if f.verdict is Verdict.SLOWER} == slow
    assert all(f.not_slower for f in findings if f.name not in slow)


def test_faster_is_faster_and_passes():
    finding = run_until_decided([series(np.random.default_rng(1), "gaussian", -0.2)])[0]
    assert finding.not_slower
    later = judge([series(np.random.default_rng(1), "gaussian", -0.2)], Rule())[0]
    assert later.verdict is Verdict.FASTER
    assert later.high < -paired.MARGIN


def test_few_pairs_say_so_instead_of_passing():
    finding = judge([series(np.random.default_rng(2), "gaussian", 0.5, n=4)], Rule())[0]
    assert (finding.verdict, finding.not_slower) == (Verdict.UNDECIDED, False)
    assert (finding.low, finding.high, finding.at_most, finding.detectable) == (None, None, None, None)


def test_the_absolute_floor_lets_a_large_share_of_nearly_nothing_pass():
    rng = np.random.default_rng(3)
    one = series(rng, "order", 0.5, "norm")
    small = PairedSeries("norm", tuple(x * 1e-5 for x in one.base), tuple(x * 1e-5 for x in one.head))
    assert judge([small], Rule())[0].verdict is Verdict.SLOWER
    floored = judge([small], Rule(floor_seconds=2e-5))[0]
    assert floored.verdict is Verdict.SAME
    assert floored.margin == pytest.approx(2.0, rel=0.05)
    assert judge([PairedSeries("norm", small.base, small.head, wall=(1.0,) * MOST_PAIRS)], Rule())[0].verdict is Verdict.SAME


@pytest.mark.parametrize("grown, verdict", [(0.03, Verdict.SLOWER), (0.0003, Verdict.SAME)])
def test_a_class_that_appears_is_judged_by_its_share_of_the_wall(grown, verdict):
    rng = np.random.default_rng(4)
    head = tuple(grown * np.exp(rng.normal(0, 0.01, MOST_PAIRS)))
    finding = judge([PairedSeries("copy", (0.0,) * MOST_PAIRS, head, wall=(1.0,) * MOST_PAIRS)], Rule())[0]
    assert finding.of_wall
    assert finding.verdict is verdict
    assert finding.change == pytest.approx(grown, rel=0.05)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_no_time_is_refused(bad):
    with pytest.raises(UserFacingError, match="metric 'wall'"):
        judge([PairedSeries("wall", (1.0, bad), (1.0, 1.0))], Rule())


def test_exact_ties_with_no_noise_are_the_same():
    finding = judge([PairedSeries("ticks", (100.0,) * 6, (100.0,) * 6)], Rule())[0]
    assert finding.verdict is Verdict.SAME
    assert finding.change == 0


def test_how_many_pairs_a_conviction_needs():
    assert paired.pairs_to_convict(1) == 8
    assert 10 <= paired.pairs_to_convict(20) <= 16
