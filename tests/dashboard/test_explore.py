"""Every asv series is found by search and drawn in a bounded form."""

import itertools
import json
import shutil

import numpy as np
import pandas as pd
import pytest

from dashboard.benchmarks_file import read_descriptions
from dashboard.charts.many import many_data, short_names
from dashboard.data import Reader, Stretches
from tests.dashboard.conftest import many, tables
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
    table = tables(test)[0]
    assert list(table["name"]) == [f"prefill.Classes.track_metric_{number}(q6_K GEMM, 3325)" for number in (0, 1)]
    stored = json.loads(sorted((asv_history / "h200").glob("*-minfer.json"))[0].read_text())["results"]
    assert table["newest"].notna().all()
    assert "prefill.Classes.track_metric_0" in stored


def stored_values(folder, commit: str, benchmark: str) -> dict[str, float]:
    """Values of one benchmark at one commit by "class, nt", from asv's own file."""
    row = json.loads((folder / "h200" / f"{commit}-minfer.json").read_text())["results"][benchmark]
    names = [f"{a}, {b}".replace("'", "") for a in row[1][0] for b in row[1][1]]
    return dict(zip(names, row[0], strict=True))


@pytest.mark.parametrize(("form", "drawn"), [("heatmap", 60), ("small multiples", 24)])
def test_explore_draws_many_series_at_once(open_screen, asv_history, form, drawn):
    test = open_screen("explore", asv_history, **{"as": form, "on": "h200"})
    data = many(test, form.replace(" ", "-"))
    assert data["middle"].shape == (drawn, 40)
    commits = [json.loads(line)["commit"] for line in (asv_history / "commits.jsonl").read_text().splitlines()]
    assert data["shorts"] == [commit[:8] for commit in commits]
    for place in (0, 17, 39):
        for row in (0, drawn - 1):
            benchmark, parameters = data["full"][row].removesuffix(")").split("(")
            assert data["middle"][row, place] == pytest.approx(
                stored_values(asv_history, commits[place], benchmark)[parameters]
            )


def test_a_stretch_of_commits_shows_lowest_middle_and_highest(asv_history):
    now = Reader(asv_history).current()
    number = int(now.series["series"].iloc[3])
    values = now.values([number])["value"].to_numpy()
    found = now.stretches([number], 7)
    starts = [-(-40 * place // 7) for place in range(8)]
    groups = [values[a:b] for a, b in itertools.pairwise(starts)]
    assert found.commits.tolist() == [len(group) for group in groups]
    assert found.low[0] == pytest.approx([group.min() for group in groups])
    assert found.middle[0] == pytest.approx([np.median(group) for group in groups])
    assert found.high[0] == pytest.approx([group.max() for group in groups])
    assert found.first["order"].tolist() == starts[:-1]


def test_stretches_hold_only_commits_of_the_machines_shown(asv_history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(asv_history, folder)
    for path in sorted((folder / "epyc-2core").glob("*-minfer.json"))[::2]:
        path.unlink()
    now = Reader(folder).current()
    by_machine = now.series.groupby("machine")["series"].first()
    assert now.stretches([int(by_machine["epyc-2core"])], 600).middle.shape == (1, 20)
    both = now.stretches([int(by_machine["epyc-2core"]), int(by_machine["h200"])], 600)
    assert np.isnan(both.middle).sum(axis=1).tolist() == [20, 0]


def test_colours_end_where_nearly_all_differences_do_and_a_missing_series_has_no_typical_value():
    middle = np.array([[1.0, 1.0, 1.0, 2.0], [np.nan] * 4], dtype=np.float32)
    first = pd.DataFrame({"short": list("abcd"), "time": ["2026-01-01"] * 4, "subject": ["s"] * 4})
    found = Stretches((1, 2), middle, middle, middle, first, np.ones(4, dtype=np.int64))
    data = many_data("heatmap", found, ["m.f(a)", "m.f(b)"], ["ms", ""], "alt")
    assert data["limit"] == pytest.approx(0.85 * np.log(2))  # the 95th percentile of 1, 1, 1 and 2 times
    assert data["typical"] == [1.0, None]
    assert data["names"] == ["a", "b"]


def test_the_list_compares_with_the_oldest_value_where_there_are_fewer_commits(asv_history):
    now = Reader(asv_history).current()
    number = int(now.series["series"].iloc[0])
    values = now.values([number])["value"].to_numpy()
    for back, before in ((5, values[-6]), (500, values[0])):
        row = now.newest_values(back).set_index("series").loc[number]
        assert (row["newest"], row["before"]) == (values[-1], before)


def test_a_meaning_is_the_benchmarks_own_and_not_its_setups(tmp_path):
    setup = 'class C:\n    def setup_cache(self):\n        """Not this."""\n\n'
    entry = {"unit": "ms", "direction": "lower", "version": "1"}
    benchmarks = {
        "a": entry | {"code": setup + '    def track_a(self):\n        """This ``one``.\n        """\n'},
        "b": entry | {"code": setup + "    def track_b(self):\n        return 1\n"},
    }
    (tmp_path / "benchmarks.json").write_text(json.dumps(benchmarks | {"version": 2}))
    described, complaint = read_descriptions(tmp_path)
    assert (described["a"].meaning, described["b"].meaning, complaint) == ("This one.", "", "")


def test_short_names_keep_what_tells_them_apart():
    assert short_names(["prefill.C.t(norm, 5)", "prefill.C.t(rope, 5)"]) == ["norm, 5", "rope, 5"]
    assert short_names(["prefill.C.t(norm, 5)", "prefill.C.u(norm, 5)"]) == ["t(norm, 5)", "u(norm, 5)"]
    assert short_names(["a.B.track_t(norm, 5)", "a.C.track_t(norm, 5)"]) == ["B.track_t(norm, 5)", "C.track_t(norm, 5)"]
    assert short_names(["one.track_alone(x.y, z)"]) == ["alone(x.y, z)"]
    assert short_names(["lab/m.C.t(norm, 5)", "desk/m.C.t(norm, 5)"]) == ["lab/m.C.t(norm, 5)", "desk/m.C.t(norm, 5)"]
    long = short_names([f"{'x' * 60}(a)", f"{'x' * 60}(b)"])
    assert long == ["a", "b"]
    assert short_names([f"one({'x' * 60}a)"])[0].endswith("xa)")


def test_a_series_without_any_value_is_left_out_and_said(open_screen, asv_history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(asv_history, folder)
    for path in (folder / "h200").glob("*-minfer.json"):
        content = json.loads(path.read_text())
        content["results"]["skipped.track_nothing"] = [[None], [], "1"]
        path.write_text(json.dumps(content))
    test = open_screen("explore", folder, on="h200", **{"as": "heatmap"})
    assert not any("track_nothing" in name for name in many(test, "heatmap")["full"])
    assert any("1 more match but have no value" in item.value for item in test.caption)


def test_explore_says_when_nothing_matches(open_screen, asv_history):
    test = open_screen("explore", asv_history, q="<b>nothing</b>")
    assert "matches" in test.info[0].value
    assert "<b>" not in test.info[0].value
