"""When a page of the dashboard was painted, by its own clock: after a click, and when it opens. And the CPU that it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from playwright.sync_api import sync_playwright

from tests.dashboard import browser

# Stamps of the page's own clock: the last message sent to the server and the last one from it.
SOCKET = """const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...all) { super(...all); this.addEventListener('message', () => { window.answered = performance.now(); }); }
  send(what) { window.asked = performance.now(); super.send(what); } };"""
# Each change of the page is followed by a frame; the last one before a quarter of a second in which neither the page nor the
# server stirred, and with what was asked for there, is when the click's answer was painted.
WATCH = """(thing) => { window.done = null;
  document.addEventListener('click', () => {
    window.pressed = performance.now(); window.asked = window.answered = 0;
    let painted = 0, changed = performance.now();
    const frame = () => requestAnimationFrame(() => setTimeout(() => { painted = performance.now(); }));
    const watching = new MutationObserver(() => { changed = performance.now(); frame(); });
    watching.observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
    const look = () => {
      const quiet = performance.now() - Math.max(changed, painted, window.answered);
      if (window.answered > window.asked && quiet > 250 && document.querySelector(thing)
          && document.querySelector('[data-test-script-state="notRunning"]')
          && !document.querySelector('[data-stale="true"]')) {
        watching.disconnect();
        window.done = [window.answered - window.asked, painted - window.pressed];
      } else setTimeout(look, 20); };
    look(); }, {once: true, capture: true}); }"""

# Of a page that opens: when its last change was painted, before half a second without another, with the script at its end.
OPENING = """(() => {
  let painted = 0, changed = 0;
  const watching = new MutationObserver(() => {
    changed = performance.now(); requestAnimationFrame(() => setTimeout(() => { painted = performance.now(); })); });
  watching.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const look = () => {
    const there = document.querySelector('[data-test-script-state="notRunning"]')
      && document.querySelector('[data-testid="stMain"] h1')
      && !document.querySelector('[data-stale="true"]') && !document.querySelector('[data-testid="stSkeleton"]');
    if (there && painted >= changed && performance.now() - Math.max(changed, painted, window.answered ?? 0) > 500) {
      watching.disconnect(); window.opened = painted;
    } else setTimeout(look, 20); };
  look(); })();"""


class Click(NamedTuple):
    """Milliseconds: from the question to the last answer, from the click to the last frame, and CPU of both sides."""

    server: float
    painted: float
    server_cpu: float
    page_cpu: float


class Timer:
    """Times clicks on one page. CPU time is what a click would take on a machine that nobody else uses."""

    def __init__(self, watched: Any) -> None:
        self.watched = watched
        self.page = watched.page
        self.server = server_of(watched.base)
        self.browser = watched.page.context.new_cdp_session(watched.page)
        self.browser.send("Performance.enable", {"timeDomain": "threadTicks"})

    def click(self, press: Callable[[], None], thing: str) -> Click:
        """Press, and wait until ``thing`` is painted and the page stands still."""
        self.page.evaluate(WATCH, thing)
        before = self._cpu()
        press()
        self.page.wait_for_function("() => window.done !== null", timeout=30_000)
        server, painted = self.page.evaluate("() => window.done")
        after = self._cpu()
        self.watched.settle()
        return Click(server, painted, after[0] - before[0], after[1] - before[1])

    def _cpu(self) -> tuple[float, float]:
        """Milliseconds of CPU so far: of the server, and of the page's own thread."""
        times = self.server.cpu_times()
        metrics = {item["name"]: item["value"] for item in self.browser.send("Performance.getMetrics")["metrics"]}
        return 1e3 * (times.user + times.system), 1e3 * metrics["TaskDuration"]


def server_of(base: str) -> psutil.Process:
    """The dashboard's process, by its port."""
    port = base.rsplit(":", 1)[-1]
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "dashboard" in line and port in line:
            return process
    raise SystemExit(f"measure_dashboard: no process of the dashboard on port {port}")


@contextmanager
def timed_page(results: Path) -> Iterator[Timer]:
    """A server on ``results`` and one page in a browser; what went wrong on the page is raised at the end."""
    with browser.serving(results) as base, sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser.executable(), args=list(browser.FLAGS))
        yield (timer := Timer(watched_page(running, base, SOCKET)))
        timer.watched.check()
        running.close()


def watched_page(running: Any, base: str, script: str) -> browser.Watched:
    """A page of a new reader's, on which ``script`` runs first."""
    context = running.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(script)
    return browser.Watched(context, base)
