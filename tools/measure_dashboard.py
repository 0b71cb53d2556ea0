"""Measure the dashboard on a big history: cold open from the cache, clicks, memory, one more commit; asv publish beside it.

    python tools/make_history.py big DIR/results --repository
    python tools/measure_dashboard.py DIR/results [--publish]

Prints JSON. Times are wall seconds of this machine as it is: its load average is printed beside them. A click is timed in
Chromium by the page's own clock: "server" from the question sent to the last answer received, "painted" from the click until
the script has run, nothing on the page is stale, what was asked for is there and a frame was drawn after that.
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

import psutil

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

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
# What is clicked in each round, on one page: a name, how to click it, and what is on the page once it is drawn.
CLICKS: tuple[tuple[str, str, str], ...] = (
    ("list to heatmap", "heatmap", ".many svg image"),
    ("heatmap to small multiples", "small multiples", ".many svg path"),
    ("small multiples to list", "list", "[data-testid=stDataFrame] canvas"),
)
# Stamps of the page's own clock: the last message sent to the server and the last one from it.
SOCKET = """const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...all) { super(...all); this.addEventListener('message', () => { window.answered = performance.now(); }); }
  send(what) { window.asked = performance.now(); super.send(what); } };"""
# From the click until the script has run, the thing is there and two frames were drawn after that.
WATCH = """(thing) => { window.done = null;
  const look = () => {
    const idle = document.querySelector('[data-test-script-state="notRunning"]')
      && !document.querySelector('[data-stale="true"]');
    if (idle && window.asked > window.pressed && window.answered > window.asked && document.querySelector(thing)) {
      requestAnimationFrame(() => setTimeout(() => {
        window.done = [window.answered - window.asked, performance.now() - window.pressed]; }));
      return; }
    if (performance.now() - window.pressed < 20000) requestAnimationFrame(look); };
  document.addEventListener('click', () => { window.pressed = performance.now(); requestAnimationFrame(look); },
    {once: true, capture: true}); }"""


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


def in_browser(results: Path, rounds: int) -> dict[str, object]:
    """First page of a fresh server and of a second reader, then clicks; the server's memory at the end."""
    from playwright.sync_api import sync_playwright

    from tests.dashboard import browser

    timings: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in CLICKS} | {"another series": []}
    first: list[float] = []
    with browser.serving(results) as base, sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser.executable(), args=list(browser.FLAGS))
        for _ in range(2):
            context = running.new_context(viewport={"width": 1280, "height": 900})
            context.add_init_script(SOCKET)
            watched = browser.Watched(context, base)
            start = time.perf_counter()
            watched.page.goto(f"{base}/explore?on=h200")
            watched.wait_until_drawn()
            first.append(time.perf_counter() - start)
        for _ in range(rounds):
            for name, label, thing in CLICKS:
                press = watched.page.get_by_role("radio", name=label, exact=True).click
                timings[name].append(_timed(watched, press, thing))
            watched.page.get_by_role("combobox", name="Series").click()
            timings["another series"].append(_timed(watched, _next_option(watched), ".js-plotly-plot .main-svg"))
        watched.check()
        memory = _memory_of(base)
        running.close()
    return {
        "first_page_of_a_fresh_server_s": round(first[0], 2),
        "first_page_of_a_second_reader_s": round(first[1], 2),
        "server_memory_mib": memory,
        "clicks": {
            name: {
                "n": len(taken),
                "server_ms": _spread([server for server, _ in taken]),
                "painted_ms": _spread([painted for _, painted in taken]),
            }
            for name, taken in timings.items()
        },
    }


def _spread(seconds: list[float]) -> list[int]:
    """Median, lowest, highest."""
    return [round(value) for value in (statistics.median(seconds), min(seconds), max(seconds))]


def _next_option(watched: object) -> Callable[[], None]:
    """Choose the option below the one that is chosen, in the list that is open."""
    page = watched.page  # type: ignore[attr-defined]
    page.keyboard.press("ArrowDown")
    return lambda: page.locator(
        '[role="option"][data-focused="true"], [role="option"][data-focus-visible="true"]'
    ).first.click()


def _timed(watched: object, press: Callable[[], None], thing: str) -> tuple[float, float]:
    """Milliseconds from the question to the server's last answer, and from the click until ``thing`` is painted."""
    page = watched.page  # type: ignore[attr-defined]
    page.evaluate(WATCH, thing)
    press()
    page.wait_for_function("() => window.done !== null", timeout=30_000)
    server, painted = page.evaluate("() => window.done")
    watched.settle()  # type: ignore[attr-defined]
    return float(server), float(painted)


def _memory_of(base: str) -> int:
    port = base.rsplit(":", 1)[-1]
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "streamlit" in " ".join(line) and port in line:
            return round(process.memory_info().rss / 2**20)
    return -1


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
        "browser": in_browser(arguments.results, arguments.rounds),
    }
    if arguments.publish:
        answer["asv_publish_s"] = round(publish(arguments.results), 1)
    print(json.dumps(answer, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
