"""What many.js makes of values that have no ratio, of others' texts, of keys and of a narrower window."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dashboard.charts.many import SCALE, many_data, short_names
from dashboard.charts.scripts import markup, script, style_sheet
from dashboard.data import Stretches
from tests.dashboard.conftest import needs_chromium

PAGE_WIDTH = 1000


def draw(page, form, values, names=None, shorts=None, width="980px"):
    middle = np.array(values, np.float32)
    count, bins = middle.shape
    first = pd.DataFrame(
        {"short": shorts or [f"{place:08x}" for place in range(bins)], "time": "2026-01-02T00:00:00", "subject": "a change"},
        index=range(bins),
    )
    found = Stretches(tuple(range(count)), middle, middle, middle, first, np.ones(bins, np.int64))
    data = many_data(form, found, names or [f"series {place}" for place in range(count)], ["ms"] * count, "alt")
    page.set_content(f"<style>{style_sheet('many')}</style><body style='margin:0;width:{width}'>{markup('many')}</body>")
    page.add_script_tag(
        content=f"{{{script('many')}\nwindow.shareOf = shareOf; window.picked = []; window.draw = (data) => many("
        "{data, parentElement: document.body, setTriggerValue: (_, place) => window.picked.push(place)});}"
    )
    page.evaluate("(text) => { window.draw(JSON.parse(text)); }", json.dumps(data, allow_nan=False))


def tip(page):
    return page.locator(".many-tip div").all_text_contents()


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("values", [[0, 0, 5], [-1, 2, -3], [0, 0, 0], [0, 3, 3]])
def test_a_heatmap_of_values_that_have_no_ratio_to_their_median(page, values):
    draw(page, "heatmap", [values, [1, 2, 3]])
    colours = page.evaluate(
        """async () => {
            const picture = new Image(); picture.src = document.querySelector(".many image").getAttribute("href");
            await picture.decode();
            const canvas = document.createElement("canvas"); canvas.width = picture.width; canvas.height = picture.height;
            const context = canvas.getContext("2d"); context.drawImage(picture, 0, 0);
            return [1, 3, 5].map((sixth) => [...context.getImageData(picture.width * sixth / 6, 8, 1, 1).data].slice(0, 3));
        }"""
    )
    median = np.median(values)
    expected = [SCALE[2] if value == median else SCALE[4] if value > median else SCALE[0] for value in values]
    assert [tuple(colour) for colour in colours] == expected


@pytest.mark.browser
@needs_chromium
def test_shares_of_the_scale(page):
    draw(page, "heatmap", [[1, 2, 3]])
    pairs = [[2, 2], [4, 2], [1, 2], [0, 2], [-4, -2], [-1, -2]]
    shares = page.evaluate("(pairs) => pairs.map(([value, median]) => shareOf(value, median, Math.log(2)))", pairs)
    assert shares == [0.5, 1.0, 0.0, -np.inf, 0, 1]


@pytest.mark.browser
@needs_chromium
def test_arrows_go_from_panel_to_panel_as_they_lie_and_leave_the_browsers_keys_alone(page):
    draw(page, "small multiples", [[place + 1, place + 2] for place in range(6)])
    page.locator(".many svg").focus()
    for key, name in [
        ("ArrowLeft", "series 0"), ("ArrowDown", "series 4"), ("ArrowDown", "series 4"), ("Control+ArrowUp", "series 4"),
        ("ArrowUp", "series 0"), ("ArrowUp", "series 0"),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert tip(page)[0] == name
    page.keyboard.press("Enter")
    assert page.evaluate("window.picked") == [0]


@pytest.mark.browser
@needs_chromium
def test_a_tip_goes_when_its_place_does(page):
    draw(page, "small multiples", [[1, 2], [3, 4]])
    page.locator(".many svg").hover(position={"x": 100, "y": 50})
    assert page.locator(".many-tip").is_visible()
    page.evaluate("document.body.style.width = '500px'")
    page.wait_for_function("document.querySelector('.many svg').clientWidth === 500")
    assert not page.locator(".many-tip").is_visible()


@pytest.mark.browser
@needs_chromium
def test_files_of_others_texts(page):
    draw(page, "heatmap", [[1, 2]], names=["\U0001f600" * 40 + "a"], shorts=["=1+1", "abc"], width="300px")
    with page.expect_download() as table:
        page.locator(".many-table").click()
    assert '"\'=1+1"' in table.value.path().read_text(encoding="utf-8").splitlines()[1]
    # The name is cut where a character of two units may stand.
    with page.expect_download() as image:
        page.locator(".many-image").click()
    assert image.value.path().read_bytes().startswith(b"\x89PNG")


def test_short_names_of_a_name_that_would_not_end():
    assert short_names(["a" * 1_000_000 + ".one", "a" * 1_000_000 + ".two"]) == ["one", "two"]
    assert short_names(["a" * 1_000_000 + ".", "b" * 1_000_000 + "."])[0].startswith("aaaa")
