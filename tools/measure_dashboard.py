"""Measure the dashboard on a big history: cold open from the cache, clicks, memory, one more commit; asv publish beside it.

    python tools/make_history.py big DIR/results --repository
    python tools/measure_dashboard.py DIR/results [--records results] [--publish]

Prints JSON. Times are wall seconds of this machine as it is: its load average is printed beside them. A click is timed in
Chromium by the page's own clock: "server" from the question sent to the last answer received, "painted" from the click until
the last frame after which the page stands still with what was asked for on it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from playwright.sync_api import sync_playwright  # noqa: E402

from tests.dashboard import browser  # noqa: E402
from tools.page_clock import OPENING, SOCKET, Click, timed_page, watched_page  # noqa: E402

COLD = """
import json, sys, time
from pathlib import Path
start = time.perf_counter()
from dashboard.data import Reader
imported = time.perf_counter()
reader = Reader(Path(sys.argv[1]))
now = reader.current()
opened = time.perf_counter()
rows = now.values([int(now.series["series"].iloc[0])])
first = time.perf_counter()
print(json.dumps({"import_s": imported - start, "open_s": opened - imported, "first_series_s": first - opened,
                  "values": len(now.series) * len(now.commits), "commits": len(now.commits), "series": len(now.series)}))
"""
# What is clicked in each round, on one page of the big history: a name, the radio button, what must be there afterwards.
CLICKS: tuple[tuple[str, str, str], ...] = (
    ("list to heatmap", "heatmap", ".many svg image"),
    ("heatmap to small multiples", "small multiples", ".many svg path"),
    ("small multiples to list", "list", ".table td"),
)
# And on a history of records, there and back: the page, then the radio buttons, buttons or switches in turn.
RECORD_CLICKS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("overview: unit of the decomposition", "", "radio", ("share of wall", "ms")),
    ("commit: older, newer", "commit", "button", ("Older",) * 4 + ("Newer",) * 4),
    ("commit: shares", "commit", "text", ("As shares of each own wall",)),
    ("queue: target", "queue", "radio", ("ceiling", "all")),
)


def cold(results: Path) -> dict[str, float]:
    """A process of its own: what the data layer takes before the first series is there."""
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(results)], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def one_more_commit(results: Path) -> float:
    """Seconds from one more result file to a cache that holds it; the file is removed again."""
    from dashboard.cache.store import Store

    store = Store(results)
    store.refresh()
    source = sorted((results / "h200").glob("*-*.json"))[-1]
    content = json.loads(source.read_text())
    content["commit_hash"] = "f" * 40
    path = source.with_name("ffffffff-minfer.json")
    path.write_text(json.dumps(content))
    try:
        start = time.perf_counter()
        store.refresh()
        return time.perf_counter() - start
    finally:
        path.unlink()
        store.refresh()


def first_pages(results: Path, path: str, rounds: int) -> dict[str, object]:
    """Opening ``path``: of a server that has just begun to answer, then of a second reader; each in a new browser.

    Seconds of the page's own clock, from navigating until it is painted; and from the start of the server's process.
    """
    taken: dict[str, list[float]] = {"fresh_server_s": [], "second_reader_s": [], "from_process_start_s": []}
    with sync_playwright() as driver:
        for _ in range(rounds):
            # The browsers are the readers' own: they run before the server starts.
            readers = [driver.chromium.launch(executable_path=browser.executable(), args=list(browser.FLAGS)) for _ in "ab"]
            begun = time.time()
            with browser.serving(results) as base:
                for name, running in zip(("fresh_server_s", "second_reader_s"), readers, strict=True):
                    watched = watched_page(running, base, SOCKET + OPENING)
                    watched.page.goto(f"{base}/{path}", wait_until="commit")
                    watched.page.wait_for_function("() => window.opened !== undefined", timeout=60_000)
                    origin, painted = watched.page.evaluate("() => [performance.timeOrigin, window.opened]")
                    taken[name].append(painted / 1e3)
                    if name == "fresh_server_s":
                        taken["from_process_start_s"].append(origin / 1e3 - begun + painted / 1e3)
                    watched.wait_until_drawn()
                    watched.check()
                    running.close()
    figures = {name: [round(value, 2) for value in _ends(values)] for name, values in taken.items()}
    return {"n": rounds} | figures


def in_browser(results: Path, rounds: int) -> dict[str, object]:
    """Clicks on one page; the server's memory at the end."""
    timings: dict[str, list[Click]] = {name: [] for name, _, _ in CLICKS} | {"another series": []}
    with timed_page(results) as timer:
        watched = timer.watched
        watched.open("explore?on=h200")
        for _ in range(rounds):
            for name, label, thing in CLICKS:
                press = watched.page.get_by_role("radio", name=label, exact=True).click
                timings[name].append(timer.click(press, thing))
            watched.page.get_by_role("combobox", name="Series").click()
            timings["another series"].append(timer.click(_next_option(watched), ".plot svg"))
        memory = round(timer.server.memory_info().rss / 2**20)
    return {
        "server_memory_mib": memory,
        "clicks": {name: _click_figures(taken) for name, taken in timings.items()},
    }


def clicks_on_records(results: Path, rounds: int) -> dict[str, object]:
    """Clicks on screens that show records; the first of each kind is left out, since it also loads scripts."""
    found: dict[str, object] = {}
    with timed_page(results) as timer:
        watched = timer.watched
        for name, path, kind, labels in RECORD_CLICKS:
            watched.open(path)
            taken = []
            for turn in range(2 * rounds + 1):
                label = labels[turn % len(labels)]
                page = watched.page
                target = page.get_by_text(label, exact=True) if kind == "text" else None
                if target is None:
                    target = page.get_by_role("radio" if kind == "radio" else "button", name=label, exact=kind == "radio")
                taken.append(timer.click(target.click, ".plot svg"))
            found[name] = _click_figures(taken[1:])
    return found


def _click_figures(taken: list[Click]) -> dict[str, object]:
    columns = zip(Click._fields, zip(*taken, strict=True), strict=True)
    return {"n": len(taken)} | {f"{name}_ms": _spread(list(values)) for name, values in columns}


def _spread(seconds: list[float]) -> list[int]:
    return [round(value) for value in _ends(seconds)]


def _ends(values: list[float]) -> tuple[float, float, float]:
    """Median, lowest, highest."""
    return statistics.median(values), min(values), max(values)


def _next_option(watched: object) -> Callable[[], None]:
    """Choose the option below the one that is chosen, in the list that is open."""
    page = watched.page  # type: ignore[attr-defined]
    page.keyboard.press("ArrowDown")
    return lambda: page.locator(
        '[role="option"][data-focused="true"], [role="option"][data-focus-visible="true"]'
    ).first.click()


def publish(results: Path) -> float:
    """Seconds that ``asv publish`` takes on the same results, which must lie in the repository of their commits."""
    config = {
        "version": 1,
        "project": "big",
        "repo": ".",
        "results_dir": str(results),
        "html_dir": "html",
        "branches": ["main"],
    }
    (results.parent / "asv.conf.json").write_text(json.dumps(config))
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "asv", "publish"], cwd=results.parent, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=Path, metavar="DIR", help="time clicks on a history of records too")
    parser.add_argument("--publish", action="store_true", help="time asv publish too (minutes)")
    arguments = parser.parse_args()
    cold(arguments.results)  # builds the cache where there is none
    runs = [cold(arguments.results) for _ in range(arguments.rounds)]
    answer: dict[str, object] = {
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "cold": {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]},
        "cold_worst_open_s": round(max(run["open_s"] for run in runs), 3),
        "one_more_commit_s": round(one_more_commit(arguments.results), 3),
        "first_page_explore": first_pages(arguments.results, "explore?on=h200", arguments.rounds),
        "browser": in_browser(arguments.results, arguments.rounds),
    }
    if arguments.records:
        answer["first_page_overview"] = first_pages(arguments.records.resolve(), "", arguments.rounds)
        answer["clicks_on_records"] = clicks_on_records(arguments.records.resolve(), arguments.rounds)
    if arguments.publish:
        answer["asv_publish_s"] = round(publish(arguments.results), 1)
    print(json.dumps(answer, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
