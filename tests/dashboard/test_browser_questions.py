"""End to end in a real browser: a search, the usual comparisons, and a dashboard that may be read only."""

from __future__ import annotations

import re
import shutil
import statistics
from urllib.parse import parse_qs, urlsplit

import pytest

from benchmarks.attribution.record import Wall
from benchmarks.attribution.record_files import read_records
from benchmarks.attribution.triage import read_triage
from tests.dashboard import browser
from tests.dashboard.conftest import needs_chromium
from tools import big_history, small_history

pytestmark = [pytest.mark.browser, needs_chromium]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Records long enough for change points, and asv results of two machines, in one folder."""
    folder = tmp_path_factory.mktemp("questions") / "results"
    big_history.write(folder, 12, 30, seed=5)
    (folder / "commits.jsonl").unlink()
    small_history.write(folder, commits=36, seed=4, layers=1)
    return folder


def column(watched, label: str) -> list[str]:
    """The cells below a heading of the first table that has it."""
    table = watched.page.locator(".table-box", has=watched.page.get_by_role("button", name=label, exact=True)).first
    place = table.locator("th").all_inner_texts().index(label)
    return table.locator(f"tbody td:nth-child({place + 1})").all_inner_texts()


def query(watched) -> dict[str, list[str]]:
    return parse_qs(urlsplit(watched.page.url).query)


def test_a_search_finds_series_by_words_in_any_order_and_stays_in_the_url(watched):
    watched.open("explore")
    field = watched.page.get_by_role("textbox", name="Search (words in any order)")
    field.fill("512 Q6_K h200")
    field.press("Enter")
    watched.page.wait_for_url("**q=**")
    watched.settle()
    names = column(watched, "name")
    assert names
    assert all("q6_K" in name and "512" in name for name in names)
    assert set(column(watched, "machine")) == {"h200"}
    assert f"{len(names)} of " in watched.page.locator('[data-testid="stCaptionContainer"]').first.inner_text()
    watched.page.reload()
    watched.settle()
    assert column(watched, "name") == names
    watched.check()


def test_a_search_without_a_match_says_so_and_the_next_one_finds_again(watched):
    watched.open("explore?q=no+such+series")
    said = watched.page.locator('[data-testid="stAlert"]').inner_text()
    assert "matches 'no such series' on any machine." in said
    assert watched.page.locator(".table-box").count() == 0
    field = watched.page.get_by_role("textbox", name="Search (words in any order)")
    field.fill("attention")
    field.press("Enter")
    watched.page.wait_for_url("**q=attention**")
    watched.settle()
    assert all("attention" in name for name in column(watched, "name"))
    watched.check()


def test_a_click_on_a_heading_sorts_what_was_found_by_its_values(watched):
    watched.open("explore?q=h200+512")
    before = column(watched, "newest")
    heading = watched.page.get_by_role("button", name="newest", exact=True)
    for down in (True, False):
        heading.click()
        values = [float(text.replace(",", "")) for text in column(watched, "newest")]
        assert values == sorted(values, reverse=down)
    assert len(set(values)) > 1
    heading.click()
    assert column(watched, "newest") == before
    watched.check()


def newest_walls(results) -> tuple[str, list[Wall]]:
    """The newest commit of the records, and its walls at the longest prompt."""
    records = [read_records(path)[-1] for path in sorted((results / "h200" / "records").glob("*.jsonl"))]
    newest = max(records, key=lambda record: record.commit_time)
    longest = max(wall.nt for wall in newest.walls)
    return newest.commit, [wall for wall in newest.walls if wall.nt == longest]


def test_a_usual_comparison_is_one_click_and_stands_in_the_url(watched, results):
    watched.open("compare")
    watched.page.get_by_role("button", name="minfer and llama.cpp", exact=True).click()
    watched.page.wait_for_url("**to-wall=**")
    watched.settle()
    commit, walls = newest_walls(results)
    assert query(watched)["from"] == query(watched)["to"] == [commit[:12]]
    fastest = {
        engine: min((wall for wall in walls if wall.engine == engine), key=lambda wall: statistics.median(wall.samples_ns))
        for engine in ("minfer", "llama.cpp")
    }
    ours, peer = (statistics.median(wall.samples_ns) for wall in fastest.values())
    answer = watched.page.locator('[data-testid="stAlert"]').first
    assert f"minfer takes {ours / peer:.3g} " in answer.inner_text()
    assert f"times the time of llama.cpp, at nt {walls[0].nt}." in answer.inner_text()
    classes = dict(zip(column(watched, "class"), column(watched, "minfer (ms)"), strict=True))
    assert fastest["minfer"].decomposition is not None
    for item in fastest["minfer"].decomposition.classes:
        assert float(classes[item.name]) == pytest.approx(item.ns / 1e6, abs=0.0051)
    said = answer.inner_text()
    watched.page.reload()
    watched.settle()
    assert answer.inner_text() == said
    watched.page.get_by_role("button", name="The last two commits", exact=True).click()
    watched.page.wait_for_function("!location.search.includes('to-wall')")
    watched.settle()
    assert "times the time of" not in answer.inner_text()
    watched.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_chosen_comparison_can_be_read(chromium, address, scheme):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = browser.Watched(context, address)
    page.open("compare")
    chosen = page.page.get_by_role("button", name="The last two commits", exact=True)
    colours = chosen.evaluate(
        "(node) => [getComputedStyle(node.querySelector('p')).color, getComputedStyle(node).backgroundColor]"
    )
    text, ground = ([int(value) / 255 for value in re.findall(r"\d+", colour)[:3]] for colour in colours)
    light = sorted(0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 for red, green, blue in (text, ground))
    assert (light[1] + 0.05) / (light[0] + 0.05) >= 4.5  # WCAG 2.2, 1.4.3
    context.close()


def test_a_choice_of_another_length_gives_costs_and_no_ratio(watched):
    watched.open("compare")
    watched.page.get_by_text("Choose what is compared").click()
    watched.page.get_by_role("combobox", name="Prompt tokens (nt)").nth(1).click()
    watched.page.get_by_role("option", name="512", exact=True).click()
    watched.page.wait_for_url("**from-nt=512**")
    watched.settle()
    assert "nt 512 against 3325" in watched.page.locator('[data-testid="stAlert"]').first.inner_text()
    headings = watched.page.locator("th").all_inner_texts()
    assert any("µs/GMAC" in heading for heading in headings)
    assert not any("ratio" in heading or "change" in heading for heading in headings)
    watched.check()


def test_a_link_to_a_commit_that_was_not_measured_says_what_is_shown_instead(watched, results):
    watched.open("commit?commit=cafecafecafe")
    shown = watched.page.locator('[data-testid="stToast"]').inner_text()
    assert f"No measured commit begins with 'cafecafecafe'. {newest_walls(results)[0][:8]} is shown instead." in shown
    watched.check()


def test_a_read_only_dashboard_shows_changes_and_takes_no_decision(chromium, results):
    with browser.serving(results, "--read-only") as base:
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        page = browser.Watched(context, base)
        page.open("changes")
        assert set(column(page, "decision")) == {"open"}
        assert page.page.locator(".plot svg").count() == 1
        main = page.page.locator('[data-testid="stMain"]')
        assert "This dashboard is read-only" in main.inner_text()
        assert main.locator("form, [data-testid=stForm], textarea, input[type=radio][name*=Decision]").count() == 0
        for name in ("Keep the decision", "Take the decision back"):
            assert page.page.get_by_role("button", name=name).count() == 0
        assert not (results / "changes").exists()
        page.check()
        context.close()


def test_a_decision_is_kept_in_a_file_that_a_read_only_dashboard_shows_and_leaves(chromium, results, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    with browser.serving(folder) as base:
        page = browser.Watched(context, base)
        page.open("changes")
        many = len(column(page, "decision"))
        page.page.get_by_role("textbox", name="Why").fill("as predicted")
        page.page.get_by_role("textbox", name="Your name").fill("A. Reader")
        page.page.get_by_role("button", name="Keep the decision").click()
        page.page.get_by_text("commit it to share it").wait_for()
        page.settle()
        (kept,) = read_triage(folder).values()
        assert (kept.reason, kept.author, kept.state) == ("as predicted", "A. Reader", "accepted")
        assert len(column(page, "decision")) == many - 1
        page.check()
    with browser.serving(folder, "--read-only") as base:
        page = browser.Watched(context, base)
        page.open("changes?show=all")
        assert sum("A. Reader" in cell for cell in column(page, "decision")) == 1
        assert page.page.get_by_role("button", name="Take the decision back").count() == 0
        page.check()
    assert list(read_triage(folder).values()) == [kept]
    context.close()
