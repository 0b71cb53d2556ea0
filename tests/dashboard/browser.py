"""A real Chromium on a real server: what the end-to-end tests and the README's screenshots share."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Streamlit's page asks for these relative to the screen's own URL first, and only then relative to the app's.
EXPECTED_404 = ("/_stcore/health", "/_stcore/host-config")


def executable() -> str | None:
    """The browser on this machine; None where there is none."""
    named = os.environ.get("MINFER_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def serving(results: Path, *arguments: str) -> Iterator[str]:
    """The dashboard on a free port of localhost; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dashboard", "--server.port", str(port)]
    command += ["--", "--results", str(results), *arguments]
    server = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        _wait_until_healthy(f"http://localhost:{port}/_stcore/health", server)
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        output = server.communicate(timeout=30)[0]
    assert "Traceback" not in output, output


def _wait_until_healthy(address: str, server: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the dashboard ended: {server.communicate()[0]}")
        try:
            with urllib.request.urlopen(address, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the dashboard did not answer within a minute")


class Watched:
    """A page that remembers everything that went wrong on it."""

    def __init__(self, context, base: str) -> None:
        self.base = base
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        self.page.on("request", self._request)

    def _console(self, message) -> None:
        where = message.location.get("url", "")
        if message.type == "error" and not ("404" in message.text and where.endswith(EXPECTED_404)):
            self.complaints.append(f"console: {message.text} ({where})")

    def _request(self, request) -> None:
        if not request.url.startswith((self.base, self.base.replace("http", "ws"), "data:", "blob:")):
            self.complaints.append(f"asked another host: {request.url}")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.base}/{path}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page stands still."""
        self.wait_until_drawn()
        self.page.wait_for_timeout(300)

    def wait_until_drawn(self) -> None:
        """Wait until the script has run and what it drew is there."""
        self.page.wait_for_selector('[data-testid="stMain"]', timeout=60_000)
        self.page.wait_for_function(
            """() => document.querySelector('[data-test-script-state="notRunning"]')
                && !document.querySelector('[data-stale="true"]')
                && !document.querySelector('[data-testid="stSkeleton"]')
                && [...document.querySelectorAll('.stBidiComponent')]
                    .every(item => item.querySelector('.plot-drawing > *, .many-drawing > *, .table-drawing > *'))""",
            timeout=60_000,
        )

    def check(self) -> None:
        """Nothing was thrown: not by the script, not in the page."""
        shown = self.page.locator('[data-testid="stException"]')
        assert shown.count() == 0, shown.first.inner_text()
        assert not self.complaints, self.complaints
