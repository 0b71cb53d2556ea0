"""The first screen: the numbers it draws are those of the records, and it never ends in an exception."""

import json
import shutil

import pytest

from tests.dashboard.conftest import charts


def test_the_stack_sums_to_the_traced_wall(open_screen, history):
    test = open_screen("overview", history)
    bars = [trace for trace in charts(test)["decomposition"] if trace["type"] == "bar"]
    records = sorted((history / "h200" / "records").glob("*.jsonl"))
    assert len(bars[0]["x"]) == len(records)
    commits = [json.loads(line)["commit"] for line in (history / "commits.jsonl").read_text().splitlines()]
    newest = json.loads((history / "h200" / "records" / f"{commits[-1]}.jsonl").read_text())
    wall = next(w for w in newest["walls"] if w["engine"] == "minfer" and w["nt"] == 3325)
    drawn = sum(
        trace["y"][list(trace["x"]).index(len(records) - 1)] for trace in bars if len(records) - 1 in list(trace["x"])
    )
    assert drawn == pytest.approx(wall["decomposition"]["wall_ns"] / 1e6)


@pytest.mark.parametrize(("view", "expected"), [("share of wall", 100.0), ("share of busy", None), ("us per GMAC", None)])
def test_each_unit_is_reached_by_its_url(open_screen, history, view, expected):
    test = open_screen("overview", history, view=view, machine="epyc-2core", nt="128")
    traces = charts(test)["decomposition"]
    assert test.query_params["view"] == view
    if expected is not None:
        assert sum(dict(zip(trace["x"], trace["y"], strict=True)).get(0, 0) for trace in traces) == pytest.approx(expected)
    if view == "us per GMAC":
        assert {trace["name"] for trace in traces} == {"q4_K GEMM", "q6_K GEMM", "attention"}


def test_an_unknown_url_value_falls_back_to_the_first_choice(open_screen, history):
    test = open_screen("overview", history, machine="nobody", nt="banana", view="x")
    assert test.sidebar.selectbox(key="choice-machine").value == "h200"


def test_a_missing_folder_says_what_to_do(open_screen, tmp_path):
    test = open_screen("overview", tmp_path / "nothing")
    assert "does not exist" in test.info[0].value
    assert "make bench" in test.info[0].value


def test_a_damaged_record_is_named_and_the_rest_is_shown(open_screen, history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(history, folder)
    bad = sorted((folder / "h200" / "records").glob("*.jsonl"))[0]
    bad.write_text('{"format": "minfer-rec')
    test = open_screen("overview", folder)
    assert len(charts(test)) >= 2
    assert any("not JSON" in item.value for item in test.markdown)
