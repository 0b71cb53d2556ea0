"""Fewer points than pixels, and every spike kept."""

import numpy as np
import pandas as pd
import pytest

from dashboard.charts.axes import MOST_POINTS
from dashboard.charts.decimate import extremes, representatives
from dashboard.charts.decomposition import MOST_BARS, stacked
from dashboard.charts.lines import over_commits
from dashboard.colours import ink, stacking_order


@pytest.mark.parametrize("count", [1, 5, 999, 1000, 1001, 10_000])
def test_extremes_keeps_spikes_ends_and_the_bound(count):
    values = np.random.default_rng(0).normal(10, 1, count)
    values[count // 3] = 1000.0
    values[count // 2] = -1000.0
    rows = extremes(values, 1000)
    assert len(rows) <= min(count, 1002)
    assert {0, count - 1, int(values.argmax()), int(values.argmin())} <= set(rows.tolist())
    assert (np.diff(rows) > 0).all()


def test_missing_values_do_not_hide_a_spike():
    values = np.full(5000, np.nan)
    values[123] = 5.0
    assert 123 in extremes(values, 100)


@pytest.mark.parametrize("count", [3, 240, 241, 10_000])
def test_representatives_are_real_rows_and_end_with_the_newest(count):
    values = np.random.default_rng(1).normal(10, 1, count)
    rows = representatives(values, 240)
    assert len(rows) <= 240 or count <= 240
    assert rows[-1] == count - 1
    assert len(set(rows.tolist())) == len(rows)


def commits(count: int) -> pd.DataFrame:
    order = np.arange(count)
    return pd.DataFrame({"order": order, "short": [f"{n:08x}" for n in order], "time": "2026-01-01", "subject": "s"})


def test_a_chart_of_ten_thousand_commits_draws_no_more_points_than_pixels():
    rows = commits(10_000).assign(
        line="minfer", value=np.random.default_rng(2).normal(5, 1, 10_000), low=np.nan, high=np.nan
    )
    both = pd.concat([rows, rows.assign(line="llama.cpp")])
    figure = over_commits(both, "x", {})
    assert sum(len(trace["x"]) for trace in figure.data) <= 2 * MOST_POINTS + 16


def test_a_stack_of_ten_thousand_commits_draws_a_bounded_number_of_bars_and_says_so():
    rows = commits(10_000).assign(part="norm", ns=5, launches=1, macs=None, busy_ns=10, traced_ns=10, wall_ns=10)
    figure, note = stacked(rows, "class_ms")
    assert len(figure.data[0]["x"]) <= MOST_BARS
    assert "10000" in note


def test_a_class_has_one_colour_and_what_is_no_kernel_is_hatched_and_on_top():
    names = ["gap: unknown", "norm", "copy-only", "strange", "unclassified", "copy", "q6_K GEMM"]
    assert stacking_order(names) == ["q6_K GEMM", "norm", "copy", "strange", "unclassified", "copy-only", "gap: unknown"]
    assert ink("strange") == ink("strange")
    assert all(ink(name).hatch for name in ("gap: unknown", "gap: new cause", "unclassified", "copy-only", "gap"))
    assert not ink("copy").hatch  # kernels that move values
