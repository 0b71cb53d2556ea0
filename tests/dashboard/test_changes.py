"""Change points are listed, decisions about them are kept, and a read-only dashboard offers none."""

import json
import shutil

import pytest

from benchmarks.attribution.acceptance import Acceptance
from benchmarks.attribution.triage import read_triage
from tests.dashboard.conftest import tables
from tools import big_history, small_history


@pytest.fixture(scope="module")
def long_history(tmp_path_factory):
    """Long enough for change points to be seen."""
    folder = tmp_path_factory.mktemp("long") / "results"
    small_history.write(folder, commits=36, seed=4, layers=1)
    return folder


def test_a_decision_about_a_change_is_kept_and_taken_back(open_screen, long_history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(long_history, folder)
    test = open_screen("changes", folder)
    table = next(frame for frame in tables(test) if "decision" in frame)
    assert set(table["decision"]) == {"open"}
    for field, text in zip(test.text_input, ("as predicted", "", "A. Reader"), strict=True):
        field.set_value(text)
    next(button for button in test.button if button.label == "Keep the decision").click().run()
    kept = list(read_triage(folder).values())
    assert [(item.machine, item.reason, item.author) for item in kept] == [("h200", "as predicted", "A. Reader")]
    again = open_screen("changes", folder, show="all")
    table = next(frame for frame in tables(again) if "decision" in frame)
    assert table["decision"].str.contains("A. Reader").sum() == 1


def test_a_decision_without_a_reason_is_refused(open_screen, long_history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(long_history, folder)
    test = open_screen("changes", folder)
    next(button for button in test.button if button.label == "Keep the decision").click().run()
    assert "reason is empty" in test.error[0].value
    assert not (folder / "changes").exists()


def test_a_read_only_dashboard_offers_no_decision(open_screen, long_history, monkeypatch):
    monkeypatch.setenv("MINFER_DASHBOARD_READ_ONLY", "1")
    test = open_screen("changes", long_history)
    assert not [button for button in test.button if button.label == "Keep the decision"]
    assert any("read-only" in item.value for item in test.caption)


def test_accepted_regressions_are_listed(open_screen, history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(history, folder)
    item = Acceptance("b" * 40, "worth it: half the memory", "a" * 40, "b" * 40, ("wall@512",), (0.031,))
    (folder / "h200" / "accepted.jsonl").write_text(item.to_json() + "\n")
    test = open_screen("changes", folder)
    table = tables(test)[0]
    assert list(table["reason"]) == ["worth it: half the memory"]
    assert list(table["slower"]) == ["wall@512 +3.10 %"]


def test_a_folder_of_asv_results_alone_shows_their_changes(open_screen, tmp_path):
    folder = tmp_path / "results"
    big_history.write(folder, 60, 10, seed=3)
    for number, path in enumerate(sorted((folder / "h200").glob("*-minfer.json"), key=lambda path: read(path)["date"])):
        content = read(path)
        values = [10.0 + 0.01 * (number % 7) + (5.0 if number >= 40 else 0.0)]
        content["results"] = {"a.step": [values, [], "1"]}
        path.write_text(json.dumps(content))
    test = open_screen("changes", folder, machine="h200")
    table = tables(test)[0]
    assert list(table["series"]) == ["a.step"]
    commits = [json.loads(line)["commit"] for line in (folder / "commits.jsonl").read_text().splitlines()]
    assert table["commit"].iloc[0] == commits[40][:8]


def read(path):
    return json.loads(path.read_text())
