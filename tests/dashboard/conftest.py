"""One small made-up history for all tests of the dashboard, and a way to open a screen on a results folder."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard import browser
from tests.dashboard.form import check, unpacked
from tools import small_history


def charts(test: AppTest) -> dict[str, list[dict]]:
    """The traces of each chart on the screen by the chart's key, each held against the form, with packed arrays unpacked."""
    found = {}
    for chart in test.get("bidi_component"):
        spec = json.loads(chart.proto.json)
        if "traces" not in spec:
            continue
        check(spec)
        found[chart.key] = [{key: unpacked(value) for key, value in trace.items()} for trace in spec["traces"]]
    return found


def tables(test: AppTest) -> list[pd.DataFrame]:
    """The tables on the screen, in order, with the columns' own names; what a cell leaves empty is missing."""
    found = []
    for item in test.get("bidi_component"):
        spec = json.loads(item.proto.json)
        if "rows" in spec:
            found.append(pd.DataFrame(spec["rows"], columns=[column["name"] for column in spec["columns"]]))
    return found


def many(test: AppTest, key: str) -> dict:
    """What the chart of many series called ``key`` was given, with its packed arrays as [series, stretch]."""
    data = next(json.loads(item.proto.json) for item in test.get("bidi_component") if item.key == key)
    for name in ("low", "middle", "high"):
        flat = np.frombuffer(base64.b64decode(data[name]), dtype="<f4")
        data[name] = flat.reshape(len(data["names"]), data["bins"])
    return data


needs_chromium = pytest.mark.skipif(
    browser.executable() is None, reason="no chromium on this machine: run `make browser`, or set MINFER_CHROMIUM"
)
APP = Path(__file__).resolve().parents[2] / "dashboard" / "app.py"


@pytest.fixture(scope="session")
def history(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "results"
    small_history.write(folder, commits=10, seed=1, layers=2)
    return folder


@pytest.fixture
def open_screen(monkeypatch):
    """open_screen("overview", folder, nt="512") runs that screen and fails on any exception that it shows."""

    def run(screen: str, results: Path, **query: str) -> AppTest:
        monkeypatch.setenv("MINFER_RESULTS", str(results))
        test = AppTest.from_file(str(APP), default_timeout=60)
        if screen == "import_trace":
            test.run()  # its URL is not its file's name, so that Streamlit must have seen the list of screens
        if screen != "overview":
            test.switch_page(f"screens/{screen}.py")
        for key, value in query.items():
            test.query_params[key] = value
        test.run()
        assert not test.exception, [item.message for item in test.exception]
        return test

    return run


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser.executable(), args=list(browser.FLAGS))
        yield running
        running.close()


@pytest.fixture(scope="module")
def address(results):
    """Of a dashboard on the module's own ``results``."""
    with browser.serving(results) as base:
        yield base


@pytest.fixture
def watched(chromium, address):
    """A page of that dashboard."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield browser.Watched(context, address)
    context.close()
