"""What the page's own scripts draw, in a real browser without a server: places, hovers, keys, zoom, files, harmless text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dashboard.charts.axes import style
from dashboard.charts.chart import Chart, drawn
from dashboard.text import for_hover
from tests.dashboard.charts.drawing import put
from tests.dashboard.conftest import needs_chromium

pytestmark = [pytest.mark.browser, needs_chromium]
PAGE_WIDTH = 800
HOSTILE = "<img src=x onerror=alert(1)>"


def stacked_bars() -> Chart:
    figure = Chart()
    for name, values, colour in (("low", [1.0, 2.0, 3.0], "#4477AA"), ("high", [4.0, 4.0, 1.0], "#EE7733")):
        figure.add_bar(
            x=np.arange(3),
            y=values,
            name=name,
            marker={"color": colour},
            customdata=[f"<b>{name}</b> {place}<br>{value:g} ms" for place, value in enumerate(values)],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.2)
    return style(figure, 400, "Time (ms)")


def tip(page) -> list[str]:
    return page.locator("[role=status] div").all_inner_texts()


def boxes(page) -> dict[str, list[list[float]]]:
    """Each colour's bars as [left, top, width, height], from the path that draws them."""
    paths = page.locator("g[clip-path] path").evaluate_all(
        "(all) => all.map((path) => [path.getAttribute('fill'), path.getAttribute('d')])"
    )
    number = r"(-?[\d.]+)"
    bar = re.compile(f"M{number},{number}h{number}v{number}")
    return {colour: [[float(value) for value in found] for found in bar.findall(d)] for colour, d in paths}


def test_bars_of_a_stack_stand_on_each_other_in_proportion(page):
    put(page, "plot", drawn(stacked_bars(), "bars", "Bars"))
    low, high = boxes(page)["#4477AA"], boxes(page)["#EE7733"]
    for under, over in zip(low, high, strict=True):
        assert over[1] + over[3] == pytest.approx(under[1], abs=0.1)
        assert over[0] == under[0]
    assert [bar[3] / low[0][3] for bar in (*low, *high)] == pytest.approx([1, 2, 3, 4, 4, 1], rel=0.01)
    assert low[0][2] == pytest.approx(0.8 * (low[1][0] - low[0][0]), rel=0.01)


def test_pointer_and_keys_read_the_same_marks(page):
    put(page, "plot", drawn(stacked_bars(), "bars", "Bars"))
    left, top, width, height = boxes(page)["#4477AA"][2]
    frame = page.locator("svg").bounding_box()
    page.mouse.move(frame["x"] + left + width / 2, frame["y"] + top + height / 2)
    assert tip(page) == ["low 2", "3 ms"]
    page.mouse.move(5, 690)
    assert page.locator("[role=status]").is_hidden()
    page.locator("svg").focus()
    seen = []
    for key in ("ArrowLeft", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        seen.append(tip(page)[0])
    assert seen[1:] == ["low 2", "high 2", "high 1", "high 0", "high 0"]
    page.keyboard.press("Escape")
    assert page.locator("[role=status]").is_hidden()


def test_the_legend_hides_shows_and_sets_alone_by_mouse_and_keys(page):
    put(page, "plot", drawn(stacked_bars(), "bars", "Bars"))
    entries = page.locator(".plot-entry")
    entries.nth(0).click()
    assert set(boxes(page)) == {"#EE7733"}
    assert entries.nth(0).get_attribute("aria-pressed") == "false"
    entries.nth(0).focus()
    page.keyboard.press("Enter")
    assert set(boxes(page)) == {"#4477AA", "#EE7733"}
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+Enter")
    assert set(boxes(page)) == {"#EE7733"}
    put(page, "plot", drawn(stacked_bars(), "bars", "Bars"))
    assert entries.nth(0).get_attribute("tabindex") == "0"
    assert entries.nth(1).get_attribute("tabindex") == "-1"


def test_a_name_of_any_letters_keeps_the_focus_when_its_entry_is_pressed(page):
    figure = Chart()
    for name in ('a"] *', "b\\"):
        figure.add_bar(x=["p"], y=[1.0], name=name, marker={"color": "#4477AA"})
    put(page, "plot", drawn(style(figure, 300, "y"), "bars", "Bars"))
    page.locator(".plot-entry").nth(0).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "b\\: shown"


def test_a_drag_zooms_and_a_double_click_shows_all_again(page):
    put(page, "plot", drawn(stacked_bars(), "bars", "Bars"))
    whole = boxes(page)["#4477AA"]
    frame = page.locator("svg").bounding_box()
    start, end = whole[1][0] - 2, whole[1][0] + whole[1][2] + 2
    page.mouse.move(frame["x"] + start, frame["y"] + 200)
    page.mouse.down()
    page.mouse.move(frame["x"] + end, frame["y"] + 220, steps=4)
    page.mouse.up()
    assert boxes(page)["#4477AA"][1][2] > 2 * whole[1][2]
    page.mouse.dblclick(frame["x"] + 300, frame["y"] + 200)
    assert boxes(page)["#4477AA"] == whole
    page.locator("svg").focus()
    page.keyboard.press("+")
    assert boxes(page)["#4477AA"][1][2] == pytest.approx(2 * whole[1][2], rel=0.02)
    page.keyboard.press("0")
    assert boxes(page)["#4477AA"] == whole


def test_new_data_take_the_place_of_the_old_and_a_resize_draws_them_once(page):
    other = stacked_bars()
    other.data = other.data[:1]
    put(page, "plot", drawn(stacked_bars(), "bars", "Bars"), drawn(other, "bars", "Other bars"))
    assert set(boxes(page)) == {"#4477AA"}
    wide = page.locator("svg").get_attribute("width")
    page.set_viewport_size({"width": 400, "height": 700})
    page.wait_for_function("(wide) => document.querySelector('svg').getAttribute('width') !== wide", arg=wide)
    assert page.locator("svg").count() == 1
    assert set(boxes(page)) == {"#4477AA"}
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_lines_break_where_nothing_was_measured_and_logarithms_place_by_ratio(page):
    figure = Chart()
    figure.add_scatter(
        x=[1.0, 10.0, 100.0, 1000.0],
        y=np.array([1.0, np.nan, 100.0, 10.0]),
        name="line",
        mode="lines+markers",
        line={"color": "#228833", "width": 2},
        error_x={"array": [0.0, 0.0, 100.0, 0.0], "arrayminus": [0.0, 0.0, 50.0, 0.0]},
        hovertemplate="at %{x:,.4g}: <b>%{y:+.3g}</b> of %{name}<extra></extra>",
    )
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    put(page, "plot", drawn(style(figure, 300, "y", legend=False), "line", "Line"))
    path = page.locator("g[clip-path] path[stroke='#228833']").get_attribute("d")
    assert path.count("M") == 2
    (x0, y0), (x2, y2), (x3, y3) = [tuple(map(float, part.split(","))) for part in path.replace("M", "L").split("L")[1:]]
    assert x2 - x0 == pytest.approx(2 * (x3 - x2), abs=0.3)
    assert y0 - y2 == pytest.approx(2 * (y3 - y2), abs=0.3)
    page.locator("svg").focus()
    page.keyboard.press("ArrowLeft")
    assert tip(page) == ["at 1,000: +10 of line"]


def test_hostile_texts_stay_text_in_chart_tip_legend_and_files(page):
    figure = Chart()
    figure.add_bar(
        x=[1.0],
        y=[for_hover(HOSTILE)],
        orientation="h",
        name=for_hover(HOSTILE),
        marker={"color": "#4477AA"},
        customdata=[f"<b>{for_hover(HOSTILE)}</b>"],
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.update_yaxes(type="category")
    put(page, "plot", drawn(style(figure, 200, HOSTILE), "bars", HOSTILE))
    page.locator("svg").focus()
    page.keyboard.press("ArrowDown")
    assert tip(page) == [HOSTILE]
    assert HOSTILE in page.locator(".plot-entry text").text_content()
    with page.expect_download() as taken:
        page.get_by_role("button", name="CSV").click()
    assert f'"{HOSTILE}","1' not in taken.value.path().read_text()
    assert HOSTILE in taken.value.path().read_text()
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(("image", "start"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_a_chart_saves_itself(page, image, start):
    put(page, "plot", drawn(stacked_bars(), "bars", "Bars", image))
    with page.expect_download() as taken:
        page.get_by_role("button", name="Save image").click()
    assert taken.value.suggested_filename == f"bars.{image}"
    assert taken.value.path().read_bytes().startswith(start)
