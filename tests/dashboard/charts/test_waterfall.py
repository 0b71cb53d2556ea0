"""The waterfall's axis: changes stay visible beside long walls, and no interval is cut off at its edge."""

import pytest

from benchmarks.attribution.ledger import WON, Ledger, Line
from benchmarks.attribution.spread import Figure, Interval
from dashboard.charts.waterfall import waterfall
from tests.dashboard.form import checked


def axis_of(before_ms: float, changes: list[Figure]) -> list[float] | None:
    lines = [Line(f"class {place}", None, None, change.scaled(1e6), WON) for place, change in enumerate(changes)]
    after_ms = before_ms + sum(change.value for change in changes)
    net = before_ms - after_ms
    book = Ledger("prefill", None, tuple(lines), 0, 0, 0, 1e6 * net, Figure(1e6 * net), None)
    return checked(waterfall(book, 1e6 * before_ms, 1e6 * after_ms, ("old", "new"))).layout.xaxis.range


def test_an_axis_begins_shortly_before_small_changes_and_at_zero_for_large_ones():
    assert axis_of(100.0, [Figure(-2.0), Figure(1.0)]) == pytest.approx([98 - 0.8 * 2, 100 + 0.3 * 2])
    assert axis_of(100.0, [Figure(-50.0)]) is None


def test_the_axis_holds_the_intervals_whole():
    low, high = axis_of(100.0, [Figure(-2.0, Interval(-9.0, 5.0, 0.95)), Figure(1.0, Interval(0.5, 1.5, 0.95))])
    assert low == pytest.approx(91.0 - 0.2)
    assert high == pytest.approx(105.0 + 0.2)
    # A wall cannot take less than nothing.
    assert axis_of(10.0, [Figure(-1.0, Interval(-30.0, 5.0, 0.95))])[0] == 0.0
