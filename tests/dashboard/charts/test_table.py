"""What table.js draws, in a real browser without a server: sorting, keys, digits, files, harmless text."""

from __future__ import annotations

import json

import pytest

from tests.dashboard.charts.drawing import put
from tests.dashboard.conftest import needs_chromium

pytestmark = [pytest.mark.browser, needs_chromium]
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
    assert page.get_by_role("button", name="Time (ms)", exact=True).count() == 1  # the arrow is for the eye
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


def texts(*values: str | None) -> dict:
    data = rows(len(values))
    data["columns"] = [data["columns"][0] | {"name": "interval", "label": "interval"}, data["columns"][1]]
    data["rows"] = [[value, float(place)] for place, value in enumerate(values)]
    return data


@pytest.mark.parametrize(
    "ordered",
    [
        ("0.15 to 0.2", "0.9 to 1.1", "5.29 to 5.89", "10.1 to 12"),
        ("-76.5 % [-80, -70]", "-3 %", "-0.5 %", "+1.5 %", "+20 %"),
        ("-1e-05 to +2", "6.5e-05", "1,200 tok/s", "a", "layer 2", "layer 10"),
        ("2026-01-09", "2026-01-10", "2026-02-01"),
        ("<img src=x>", "q4_K GEMM", "q6_K \"GEMM\"", "q6_K GEMM"),
    ],
)
def test_texts_that_begin_with_numbers_are_sorted_as_numbers(page, ordered):
    put(page, "table", texts(*reversed(ordered), None, ""))
    heading = page.get_by_role("button", name="interval")
    heading.click()
    assert column(page, 1) == [*ordered, "", ""]
    heading.click()
    assert column(page, 1) == [*reversed(ordered), "", ""]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.00044, 2, "0.00044"),
        (-0.00044, 2, "-0.00044"),
        (0.0, 2, "0.00"),
        (1e-12, 6, "1e-12"),
        (0.004, 0, "0.004"),
        (12345.678, 2, "12,345.68"),
        (1e21, 0, "1000000000000000000000"),
        (1.5e-9, None, "1.5e-9"),
        (-1.234e25, None, "-1.234e25"),
        (3325, None, "3,325"),
    ],
)
def test_a_value_that_is_not_zero_is_never_written_as_zero(page, value, digits, text):
    data = rows(1)
    data["columns"][1]["digits"] = digits
    data["rows"] = [["c", value]]
    put(page, "table", data)
    assert column(page, 2) == [text]


@pytest.mark.parametrize("columns", [0, 2])
def test_a_table_of_no_rows_has_its_headings_and_is_sorted_and_saved(page, columns):
    data = rows(0)
    data["columns"] = data["columns"][:columns]
    put(page, "table", data)
    assert page.locator("th").count() == columns
    for heading in page.locator("th button").all():
        heading.click()
    assert page.locator("tbody tr").count() == 0
    with page.expect_download() as taken:
        page.get_by_role("button", name="CSV").click()
    assert taken.value.path().read_text() == ",".join(['"class"', '"class_ms"'][:columns]) + "\n"


def focused(page) -> str:
    return page.evaluate("document.activeElement.textContent")


def test_arrows_go_along_the_headings_and_leave_the_browsers_keys_alone(page):
    put(page, "table", rows(9))
    page.get_by_role("button", name="class", exact=True).focus()
    page.keyboard.press("Alt+ArrowRight")
    assert focused(page) == "class"
    page.keyboard.press("ArrowRight")
    assert focused(page) == "Time (ms)"
    page.keyboard.press("Tab")
    assert focused(page) == "CSV"
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "Time (ms)"


def test_new_data_leave_the_focus_where_it_was(page):
    put(page, "table", rows(9))
    page.get_by_role("button", name="Time (ms)").focus()
    page.evaluate("(text) => { window.draw(JSON.parse(text)); }", json.dumps(rows(4)))
    assert focused(page) == "Time (ms)"
    page.locator(".table-box").focus()
    page.evaluate("(text) => { window.draw(JSON.parse(text)); }", json.dumps(rows(5)))
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Table rows"


def test_a_long_table_tells_how_many_rows_it_has(page):
    put(page, "table", rows(1000))
    assert page.locator("table").get_attribute("aria-rowcount") == "1001"


def test_data_that_were_replaced_leave_no_listener(page):
    put(page, "table", rows(9))
    page.evaluate(
        """() => {
            window.listening = 0;
            const [add, remove] = [window.addEventListener, window.removeEventListener];
            window.addEventListener = function (...all) { window.listening += 1; return add.apply(window, all); };
            window.removeEventListener = function (...all) { window.listening -= 1; return remove.apply(window, all); };
        }"""
    )
    for count in (3, 5, 7):
        page.evaluate("(text) => { window.draw(JSON.parse(text)); }", json.dumps(rows(count)))
        assert page.evaluate("window.listening") == 0
