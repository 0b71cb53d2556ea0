"""Every asv series is found by search and drawn in a bounded form."""

import json

import pytest

from tests.dashboard.conftest import charts
from tools import big_history


def test_explore_without_asv_results_says_so(open_screen, history):
    test = open_screen("explore", history)
    assert "no asv results" in test.info[0].value


@pytest.fixture(scope="module")
def asv_history(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asv") / "results"
    big_history.write(folder, 40, 60, seed=2)
    return folder


def test_explore_finds_series_by_words_in_any_order(open_screen, asv_history):
    test = open_screen("explore", asv_history, q="3325 q6_k", on="h200")
    table = test.dataframe[0].value
    assert list(table["name"]) == [f"prefill.Classes.track_metric_{number}(q6_K GEMM, 3325)" for number in (0, 1)]
    stored = json.loads(sorted((asv_history / "h200").glob("*-minfer.json"))[0].read_text())["results"]
    assert table["newest"].notna().all()
    assert "prefill.Classes.track_metric_0" in stored


@pytest.mark.parametrize("form", ["heatmap", "small multiples"])
def test_explore_draws_many_series_at_once(open_screen, asv_history, form):
    test = open_screen("explore", asv_history, **{"as": form})
    drawn = charts(test)[form.replace(" ", "-")]
    assert len(drawn) == (1 if form == "heatmap" else 2 * 24)


def test_explore_says_when_nothing_matches(open_screen, asv_history):
    test = open_screen("explore", asv_history, q="<b>nothing</b>")
    assert "matches" in test.info[0].value
    assert "<b>" not in test.info[0].value
