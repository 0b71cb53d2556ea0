"""End to end in a real browser: every screen opens, clicks work, a shared URL is followed, a file is dropped."""

from __future__ import annotations

import json
import re

import pytest

from tests.dashboard import browser
from tests.dashboard.conftest import needs_chromium
from tests.dashboard.test_import import llama_bench_rows
from tools import big_history, small_history

SCREENS = ("", "commit", "compare", "queue", "kernels", "predictions", "changes", "trust", "explore", "import", "published")
pytestmark = [pytest.mark.browser, needs_chromium]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Records and asv results in one folder, with hostile text among them."""
    folder = tmp_path_factory.mktemp("browser") / "results"
    big_history.write(folder, 20, 30, seed=5)
    (folder / "commits.jsonl").unlink()
    small_history.write(folder, commits=30, seed=5, layers=2)
    return folder


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_opens_by_its_url(watched, screen):
    watched.open(screen)
    watched.check()
    assert watched.page.locator("h1").count() == 1


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_no_screen_is_wider_than_the_window(chromium, address, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = browser.Watched(context, address)
    for screen in ("", "commit", "compare", "explore"):
        page.open(screen)
        page.check()
        widest = page.page.evaluate("document.querySelector('[data-testid=\"stMain\"]').scrollWidth")
        assert widest <= width, f"{screen or 'overview'} is {widest} px wide"
    dark = page.page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", dark)[:3])) < 200) == (scheme == "dark")
    context.close()


def test_a_click_changes_the_url_and_the_url_brings_the_view_back(watched, chromium, address):
    watched.open("")
    watched.page.get_by_role("radio", name="share of wall").click()
    watched.settle()
    shared = watched.page.url
    assert "view=share" in shared
    context = chromium.new_context()
    other = browser.Watched(context, address)
    other.open(shared.removeprefix(address + "/"))
    assert other.page.get_by_role("radio", name="share of wall").is_checked()
    assert "traced wall" in other.page.locator('[data-testid="stCaptionContainer"]').last.inner_text()
    other.check()
    context.close()
    watched.check()


def test_the_keyboard_steps_through_commits(watched):
    watched.open("commit")
    first = watched.page.locator("code").first.inner_text()
    watched.page.locator("h1").click()
    watched.page.keyboard.press("j")
    watched.page.wait_for_url("**commit=**")
    watched.settle()
    second = watched.page.locator("code").first.inner_text()
    assert second != first
    watched.page.keyboard.press("k")
    watched.settle()
    assert watched.page.locator("code").first.inner_text() == first
    watched.check()


# What has the focus, and whether it has a ring; Streamlit's text fields have a coloured border instead, which fades in.
WHERE = """() => {
  const at = document.activeElement, look = getComputedStyle(at);
  const name = at.getAttribute('aria-label') || at.textContent || at.title || at.labels?.[0]?.textContent || '';
  const ring = at.matches('input, textarea') || (look.outlineStyle === 'solid' && look.outlineWidth === '2px');
  return at === document.body ? null : {name: name.trim(), what: at.outerHTML.slice(0, 300), seen: ring};
}"""


@pytest.mark.parametrize("screen", SCREENS)
def test_the_tab_key_goes_through_a_screen_by_named_and_visible_stops(watched, screen):
    watched.open(screen)
    stops = []
    for _ in range(150):
        watched.page.keyboard.press("Tab")
        stop = watched.page.evaluate(WHERE)
        if stop is None:
            break
        stops.append(stop)
    else:
        pytest.fail(f"no way out of {screen or 'overview'} in 150 steps")
    assert len(stops) > 11, stops  # eleven screens, and something on this one
    assert [stop["what"] for stop in stops if not stop["name"]] == []
    assert [stop["what"] for stop in stops if not stop["seen"]] == []
    watched.check()


def test_the_link_to_a_view_is_copied(watched, chromium):
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.open("compare?nt=512")
    watched.page.get_by_role("button", name="Link to this view").click()
    code = watched.page.locator('[data-testid="stCode"]').last
    code.hover()
    code.get_by_role("button", name="Copy to clipboard").click()
    copied = watched.page.evaluate("navigator.clipboard.readText()")
    assert copied == code.locator("code").inner_text() == watched.page.url
    watched.check()


@pytest.mark.parametrize("screen", ["", "commit", "explore?as=heatmap"])
def test_paper_holds_all_of_a_screen_and_none_of_its_controls_for_the_screen(watched, screen):
    watched.open(screen)
    watched.page.emulate_media(media="print")
    watched.page.set_viewport_size({"width": 700, "height": 900})
    watched.settle()
    assert watched.page.locator('[data-testid="stSidebar"]').is_hidden()
    assert watched.page.get_by_role("button", name="CSV").first.is_hidden()
    drawn = watched.page.locator(".plot svg, .many svg, .table-box")
    edges = drawn.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().right)")
    assert max(edges) <= 700
    watched.check()


def test_a_question_leads_to_its_screen(watched):
    watched.open("?nt=512")
    watched.page.get_by_role("link", name="What next?").click()
    watched.page.wait_for_url("**/queue?**")
    watched.settle()
    assert "nt=512" in watched.page.url
    assert "What to do next" in watched.page.locator("h1").inner_text()
    watched.check()


def test_the_selection_goes_along_to_other_screens(watched):
    watched.open("?nt=512")
    watched.page.locator('[data-testid="stSidebarNav"]').get_by_text("Commit", exact=True).click()
    watched.page.wait_for_url("**/commit?**nt=512**")
    watched.settle()
    assert "nt = 512" in watched.page.locator('[data-testid="stMain"]').inner_text()
    watched.check()


def test_a_dropped_file_gets_its_portrait(watched, tmp_path):
    path = tmp_path / "<img src=x onerror=alert(1)>.json"
    path.write_bytes(llama_bench_rows())
    watched.open("import")
    watched.page.locator('input[type="file"]').set_input_files(path)
    watched.page.get_by_text("Benchmark rows").wait_for(timeout=30_000)
    watched.settle()
    assert watched.page.locator("img[src=x]").count() == 0
    watched.check()


def test_hostile_subjects_stay_text(watched, results):
    commits = [json.loads(line) for line in (results / "commits.jsonl").read_text().splitlines()]
    hostile = next(item for item in commits if "<script>" in item["subject"])
    watched.open(f"commit?commit={hostile['commit'][:12]}")
    heading = watched.page.locator("h3").first
    assert '<script>alert("x")</script>' in heading.inner_text()
    assert watched.page.locator("[data-testid=stMain] img").count() == 0
    assert watched.page.locator('a[href^="javascript:"]').count() == 0
    watched.check()


def test_a_commit_added_while_open_appears_after_a_reload(watched, results):
    watched.open("")
    path = sorted((results / "h200" / "records").glob("*.jsonl"))[0]
    record = json.loads(path.read_text())
    record |= {"commit": "e" * 40, "commit_time": "2031-01-01T00:00:00+00:00"}
    (path.parent / ("e" * 40 + ".jsonl")).write_text(json.dumps(record) + "\n")
    watched.page.wait_for_timeout(5_200)
    watched.open("")
    assert "eeeeeeee" in watched.page.locator('[data-testid="stMain"]').inner_text()
    watched.check()


@pytest.mark.parametrize("form", ["heatmap", "small multiples"])
def test_a_click_on_one_of_many_series_opens_it(watched, form):
    watched.open("explore?on=h200")
    watched.page.get_by_role("radio", name=form, exact=True).click()
    watched.settle()
    drawing = watched.page.locator(".many svg")
    box = drawing.bounding_box()
    place = (box["width"] - 40, 60)
    drawing.hover(position={"x": place[0], "y": place[1]})
    tip = watched.page.locator(".many-tip")
    name = tip.locator("div").first.inner_text()
    assert name.startswith("prefill.Classes.track_metric")
    assert "of the series' median" in tip.inner_text()
    drawing.click(position={"x": place[0], "y": place[1]})
    watched.page.wait_for_url("**series=**")
    watched.settle()
    assert watched.page.get_by_role("combobox", name="Series").input_value() == f"h200/{name}"
    watched.check()


def test_the_keyboard_moves_over_the_heatmap_and_saves_go_by_buttons(watched):
    watched.open("explore?on=h200&as=heatmap")
    watched.page.locator(".many svg").focus()
    watched.page.keyboard.press("ArrowDown")
    watched.page.keyboard.press("ArrowDown")
    tip = watched.page.locator(".many-tip")
    name = tip.locator("div").first.inner_text()
    with watched.page.expect_download() as taken:
        watched.page.locator(".many-table").click()
    text = taken.value.path().read_text()
    assert text.startswith("series,unit,first commit")
    assert f'"{name}"' in text
    with watched.page.expect_download() as taken:
        watched.page.locator(".many-image").click()
    assert taken.value.path().read_bytes().startswith(b"\x89PNG")
    watched.page.locator(".many svg").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        watched.page.keyboard.press(key)
    watched.page.wait_for_url("**series=**")
    watched.settle()
    assert watched.page.get_by_role("combobox", name="Series").input_value() == f"h200/{name}"
    watched.check()


def test_hostile_names_of_series_stay_text(chromium, tmp_path):
    hostile = "<img src=x onerror=alert(1)>"
    folder = tmp_path / "results"
    big_history.write(folder, 5, 30, seed=5)
    for path in (folder / "h200").glob("*-minfer.json"):
        content = json.loads(path.read_text())
        content["results"][f"=a.{hostile}"] = content["results"].pop("prefill.Classes.track_metric_0")
        path.write_text(json.dumps(content))
    lines = [json.loads(line) | {"subject": hostile} for line in (folder / "commits.jsonl").read_text().splitlines()]
    (folder / "commits.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    with browser.serving(folder) as base:
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        page = browser.Watched(context, base)
        for form in ("heatmap", "small multiples"):
            page.open(f"explore?on=h200&as={form}")
            page.page.locator(".many svg").hover(position={"x": 600, "y": 60})
            assert hostile in page.page.locator(".many-tip").inner_text()
            with page.page.expect_download() as taken:
                page.page.locator(".many-table").click()
            assert "\"'=a." in taken.value.path().read_text()
        assert page.page.locator("img[src=x]").count() == 0
        page.check()
        context.close()
