"""What table.js draws, in a real browser without a server: sorting, keys, digits, files, harmless text."""

from __future__ import annotations

import json

import pytest

from tests.dashboard import browser
from tests.dashboard.charts.drawing import put

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(browser.executable() is None, reason="no chromium on this machine: run `make browser`"),
]
PAGE_WIDTH = 800
HOSTILE = "<img src=x onerror=alert(1)>"


def rows(count: int) -> dict:
    columns = [
        {"name": "class", "label": "class", "help": "", "number": False, "digits": None},
        {"name": "class_ms", "label": "Time (ms)", "help": "Attributed time", "number": True, "digits": 2},
    ]
    return {
        "file": "rows",
        "alt": "Table rows",
        "columns": columns,
        "rows": [[f"c{place}", float(place % 7) if place % 5 else None] for place in range(count)],
        "height": 300,
        "wrap": False,
    }


def column(page, place: int) -> list[str]:
    return page.locator(f"tbody td:nth-child({place})").all_inner_texts()


def test_a_heading_sorts_both_ways_and_back_and_empty_cells_stay_last(page):
    put(page, "table", rows(9))
    assert column(page, 2) == ["", "1.00", "2.00", "3.00", "4.00", "", "6.00", "0.00", "1.00"]
    heading = page.get_by_role("button", name="Time (ms)")
    heading.click()
    assert column(page, 2) == ["6.00", "4.00", "3.00", "2.00", "1.00", "1.00", "0.00", "", ""]
    assert page.locator("th").nth(1).get_attribute("aria-sort") == "descending"
    heading.press("Enter")
    assert column(page, 2) == ["0.00", "1.00", "1.00", "2.00", "3.00", "4.00", "6.00", "", ""]
    heading.click()
    assert column(page, 1) == [f"c{place}" for place in range(9)]


def test_the_sorting_stays_when_the_next_commit_fills_the_table(page):
    put(page, "table", rows(9), rows(12))
    page.get_by_role("button", name="Time (ms)").click()
    page.evaluate("(text) => { window.draw(JSON.parse(text)); }", json.dumps(rows(20)))
    assert page.locator("table").count() == 1
    assert column(page, 2)[:3] == ["6.00", "6.00", "5.00"]


def test_a_long_table_is_drawn_as_far_as_it_is_read_and_whole_on_paper(page):
    put(page, "table", rows(1000))
    assert 100 <= page.locator("tbody tr").count() < 300
    page.evaluate("document.querySelector('.table-box').scrollTop = 1e6")
    page.wait_for_function("document.querySelectorAll('tbody tr').length >= 300")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tbody tr").count() == 1000


@pytest.mark.parametrize("text", ["=1+1", "@x", "+1", "-1"])
def test_a_cell_that_looks_like_a_formula_is_saved_as_text(page, text):
    data = rows(1)
    data["rows"] = [[text, -1.5], [HOSTILE, None]]
    put(page, "table", data)
    assert column(page, 1) == [text, HOSTILE]
    with page.expect_download() as taken:
        page.get_by_role("button", name="CSV").click()
    assert taken.value.path().read_text() == f'"class","class_ms"\n"\'{text}",-1.5\n"{HOSTILE}",\n'
    assert page.locator("img").count() == 0
