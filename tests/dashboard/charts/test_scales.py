"""Axes of odd values: nothing hangs or throws, and ticks stand at right places with right texts."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from dashboard.charts.axes import style
from dashboard.charts.chart import Chart, drawn
from dashboard.charts.scripts import script
from tests.dashboard.charts.drawing import put
from tests.dashboard.conftest import needs_chromium

pytestmark = [pytest.mark.browser, needs_chromium]
PAGE_WIDTH = 800


@pytest.fixture
def scales(page):
    page.set_content("<body></body>")
    page.add_script_tag(content=f"{{{script('plot')}\nwindow.scales = {{linearTicks, logTicks, rangeOf, short, cell}};}}")
    return page


def ticks(scales, name: str, low: float, high: float, most: float) -> tuple[list[float], list[str]]:
    found = scales.evaluate("([name, ...all]) => window.scales[name](...all)", [name, low, high, most])
    return [tick["place"] for tick in found], [tick["lines"][0] for tick in found]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 10, ["0", "2", "4", "6", "8", "10"]),
        (-0.3, 0.3, ["-0.2", "0", "0.2"]),
        (74.05, 74.65, ["74.2", "74.4", "74.6"]),
        (1e-9, 3e-9, ["1.0e-9", "1.5e-9", "2.0e-9", "2.5e-9", "3.0e-9"]),
        (0, 8e-15, ["0", "2e-15", "4e-15", "6e-15", "8e-15"]),
        (0, 4e18, ["0", "1e18", "2e18", "3e18", "4e18"]),
        (-4e15, 0, ["-4e15", "-3e15", "-2e15", "-1e15", "0"]),
    ],
)
def test_linear_ticks(scales, low, high, texts):
    places, found = ticks(scales, "linearTicks", low, high, 5)
    assert found == texts
    assert places == pytest.approx([float(text) for text in texts], rel=1e-9)


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.1 + 0.2), (1e16, 1e16 + 2), (-1e300, 1e300), (5.0, 5.0)])
def test_ticks_of_a_range_between_neighbouring_numbers_end(scales, low, high):
    places, _ = ticks(scales, "linearTicks", low, high, 5)
    assert len(places) <= 12


@pytest.mark.parametrize(
    ("low", "high", "most", "texts"),
    [
        (0, 1, 5, ["1", "2", "3", "5", "7", "10"]),
        (0, 2.6, 10, ["1", "2", "5", "10", "20", "50", "100", "200"]),
        (0, 2.6, 5, ["1", "10", "100"]),
        (-5, -4, 5, ["1e-5", "2e-5", "3e-5", "5e-5", "7e-5", "0.0001"]),
        (-20, 20, 5, ["1e-16", "1e-8", "1", "100,000,000", "1e16"]),
        (0.1, 0.2, 1, ["1.5"]),
    ],
)
def test_logarithmic_ticks_are_as_many_as_there_is_room_for(scales, low, high, most, texts):
    places, found = ticks(scales, "logTicks", low, high, most)
    assert found == texts
    assert places == pytest.approx([np.log10(float(text.replace(",", ""))) for text in texts], abs=1e-9)


@pytest.mark.parametrize(
    ("axis", "kind", "names", "extent", "zero", "expected"),
    [
        ({}, "linear", None, [0, 0], True, [0, 0.05]),
        ({}, "linear", None, [-2, 0], True, [-2.1, 0]),
        ({}, "linear", None, [0.3, 0.1 + 0.2], False, [0.2985, 0.3015]),
        ({}, "linear", None, [7, 7], False, [6.965, 7.035]),
        ({}, "log", None, [2, 2], False, [1.96, 2.04]),
        ({"range": [3, 3]}, "linear", None, [0, 100], False, [-5, 105]),
        ({"range": [1, 3]}, "linear", None, [0, 100], False, [1, 3]),
        ({}, "category", [], [0, 1], False, [-0.5, 0.5]),
        ({"autorange": "reversed"}, "category", ["a", "b"], [0, 1], False, [1.5, -0.5]),
    ],
)
def test_every_range_has_a_width(scales, axis, kind, names, extent, zero, expected):
    found = scales.evaluate(
        "([axis, kind, names, extent, zero]) => window.scales.rangeOf(axis, kind, names, extent, zero, false)",
        [axis, kind, names, extent, zero],
    )
    assert found == pytest.approx(expected)


def test_what_was_not_measured_is_empty_in_a_file(scales):
    assert scales.evaluate("[NaN, Infinity, null, undefined, 0, -1.5, '\\t=1', 'a\"b'].map(window.scales.cell)") == [
        "", "", "", "", 0, -1.5, '"\'\t=1"', '"a""b"',
    ]  # fmt: skip


def line(x, y, x_axis=None, y_axis=None) -> dict:
    figure = Chart()
    figure.add_scatter(x=x, y=y, name="line", mode="lines+markers", line={"color": "#228833"})
    figure.update_xaxes(**(x_axis or {}))
    figure.update_yaxes(**(y_axis or {}))
    return drawn(style(figure, 300, "y"), "line", "Line")


def points(page) -> list[tuple[float, float]]:
    d = page.locator("g[clip-path] path[stroke='#228833'][fill='none']").get_attribute("d")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", d)]


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ([], 0),
        ([5.0], 1),
        ([np.nan, np.nan], 0),
        ([1.0, np.inf, 3.0], 2),
        ([0.3, 0.1 + 0.2, 0.3], 3),
        ([1e16, 1e16 + 2], 2),
        ([-1.0, 0.0, 1e-300], 3),
        ([1e300, -1e300], 2),
    ],
)
def test_a_line_of_odd_values_draws_those_that_are_numbers(page, values, seen):
    said = []
    page.on("console", lambda message: said.append(message.text))
    put(page, "plot", line(np.arange(len(values)), np.array(values, float)))
    assert len(points(page)) == seen if seen else page.locator("g[clip-path] path").count() == 0
    assert all(28 <= y <= 300 for _, y in points(page)) if seen else True
    assert said == []  # of a place that is no number


@pytest.mark.parametrize("values", [[-1.0, 0.0, 10.0, 100.0], [np.nan, np.inf, 10.0, 100.0]])
def test_a_logarithmic_axis_leaves_out_what_has_no_logarithm(page, values):
    put(page, "plot", line(np.arange(4), np.array(values), y_axis={"type": "log"}))
    (_, first), (_, second) = points(page)
    assert first > second
    assert page.locator("text", has_text=re.compile("^(10|100)$")).count() == 2


@pytest.mark.parametrize(
    "axes", [{}, {"x_axis": {"type": "category"}, "y_axis": {"type": "category"}}, {"y_axis": {"type": "log"}}]
)
def test_a_chart_without_marks_is_an_empty_frame(page, axes):
    said = []
    page.on("console", lambda message: said.append(message.text))
    chart = line([], [], **axes)
    chart["layout"]["shapes"] = [{"x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper", "line": {"color": "#000000"}}]
    put(page, "plot", chart)
    page.locator("svg").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("+")
    assert page.locator(".plot-tip").is_hidden()
    assert said == []


def test_an_interval_that_reaches_below_zero_goes_to_the_edge_of_a_logarithmic_axis(page):
    figure = Chart()
    figure.add_scatter(
        x=[10.0, 100.0], y=["a", "b"], mode="markers", marker={"color": "#228833", "size": 11},
        error_x={"color": "#808080", "array": [5.0, 50.0], "arrayminus": [12.0, 50.0]},
    )  # fmt: skip
    figure.update_xaxes(type="log")
    put(page, "plot", drawn(style(figure, 200, ""), "costs", "Costs"))
    d = page.locator("g[clip-path] path[stroke='#808080']").get_attribute("d")
    lines = re.findall(r"M([\d.]+),([\d.]+)H([\d.]+)", d)
    assert len(lines) == 2
    assert len(re.findall("v6", d)) == 3  # two ends of b, one of a
    frame = page.locator("clipPath rect")
    assert float(lines[0][0]) == pytest.approx(float(frame.get_attribute("x")) + 1, abs=0.1)


def test_keys_zoom_within_bounds_and_leave_the_browsers_zoom_alone(page):
    put(page, "plot", line(np.arange(30), np.arange(30.0)))
    whole = points(page)
    page.locator("svg").focus()
    for key in ("Control++", "Control+-", "Control+0", "Alt+ArrowLeft", "Meta+ArrowLeft"):
        page.keyboard.press(key)
    assert points(page) == whole
    assert page.locator(".plot-tip").is_hidden()
    for _ in range(80):
        page.keyboard.press("+")
    assert page.locator("text").count() < 40
    page.keyboard.press("0")
    assert points(page) == whole
    for _ in range(80):
        page.keyboard.press("-")
    inside = [x for x, _ in points(page)]
    assert 10 < inside[-1] - inside[0] < whole[-1][0] - whole[0][0]
    page.keyboard.press("0")
    assert points(page) == whole


def test_packed_ticks_and_texts_are_unpacked(page):
    figure = Chart()
    figure.add_scatter(
        x=np.arange(3), y=np.arange(3.0), mode="markers", marker={"color": "#228833"},
        customdata=np.array([7.5, np.nan, 9.0]), hovertemplate="held %{customdata:.3g}",
    )  # fmt: skip
    figure.update_xaxes(tickvals=np.array([0, 2]), ticktext=["first", "last"], range=np.array([-0.5, 2.5]))
    put(page, "plot", drawn(style(figure, 300, "y"), "ticks", "Ticks"))
    assert page.locator("text", has_text=re.compile("^(first|last)$")).count() == 2
    page.locator("svg").focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".plot-tip div").all_inner_texts() == ["held 9"]


def test_saved_values_that_were_not_measured_are_empty(page):
    put(page, "plot", line(np.arange(3), np.array([1.5, np.nan, np.inf])))
    with page.expect_download() as taken:
        page.get_by_role("button", name="CSV").click()
    assert [row.split(",")[2] for row in taken.value.path().read_text().splitlines()[1:]] == ["1.5", "", ""]


def test_drawings_that_were_replaced_are_not_drawn_again(page):
    put(page, "plot", line(np.arange(3), np.arange(3.0)), line(np.arange(4), np.arange(4.0)))
    page.evaluate(
        "(text) => { window.draw(JSON.parse(text))(); }", json.dumps(line(np.arange(2), np.arange(2.0)))
    )  # ended at once
    assert page.locator("svg").count() == 1
    page.set_viewport_size({"width": 500, "height": 700})
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert float(page.locator("svg").get_attribute("width")) > 500
    assert len(points(page)) == 2
