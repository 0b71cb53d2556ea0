"""asv's files become series in the order of the history, wherever a commit went."""

import json

import pytest

from benchmarks.attribution import asv_results as a

COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "samples"]


def store(results, commit, date, values, params=(("512", "3325"),)):
    folder = results / "box"
    folder.mkdir(parents=True, exist_ok=True)
    row = [values, [list(axis) for axis in params], "1", 0, 0.1, None, [[value, value] for value in values]]
    content = {
        "version": 2, "commit_hash": commit, "date": date, "env_name": "checkout", "result_columns": COLUMNS,
        "results": {"prefill.Wall.track_s": row},
    }  # fmt: skip
    (folder / f"{commit[:8]}-checkout.json").write_text(json.dumps(content))


def test_parameters_are_expanded_and_commits_ordered_by_git(tmp_path):
    # Dates lie: the history says c1, c2, c3.
    store(tmp_path, "c2", 100, [2.0, 20.0])
    store(tmp_path, "c1", 300, [1.0, 10.0])
    store(tmp_path, "c3", 200, [3.0, None])
    (tmp_path / "box" / "machine.json").write_text("{}")
    (tmp_path / "benchmarks.json").write_text(
        json.dumps({"version": 2, "prefill.Wall.track_s": {"unit": "s/token", "direction": "lower"}})
    )
    second, first = a.read_asv_results(tmp_path, ["c1", "c2", "c3"])
    assert (first.name, second.name) == ("prefill.Wall.track_s(512)", "prefill.Wall.track_s(3325)")
    assert (first.unit, first.direction, first.machine) == ("s/token", "lower", "box")
    assert [(p.commit, p.value, p.samples) for p in first.points] == [
        ("c1", 1.0, (1.0, 1.0)), ("c2", 2.0, (2.0, 2.0)), ("c3", 3.0, (3.0, 3.0)),
    ]  # fmt: skip
    assert [p.value for p in second.points] == [10.0, 20.0]


def test_a_commit_that_git_forgot_is_placed_by_its_date():
    places = a.commit_places(["c1", "c2", "c3"], {"c1": 10, "c2": 20, "c3": 30, "gone": 25, "older": 5})
    assert sorted(places, key=places.get) == ["older", "c1", "c2", "gone", "c3"]


def test_a_benchmark_without_parameters_and_nan(tmp_path):
    store(tmp_path, "c1", 1, [4.0], params=())
    store(tmp_path, "c2", 2, [float("nan")], params=())
    (series,) = a.read_asv_results(tmp_path, ["c1", "c2"])
    assert series.name == "prefill.Wall.track_s" and [p.value for p in series.points] == [4.0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object, seen list"),
        ('{"version": 1}', "result version 1, expected 2"),
        ('{"version": 2, "results": {}}', "not the form of an asv result"),
    ],
)
def test_a_bad_file_is_named_in_one_line(tmp_path, text, says):
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "abc-env.json").write_text(text)
    with pytest.raises(a.AsvResultError) as error:
        a.read_asv_results(tmp_path)
    assert says in str(error.value) and "abc-env.json" in str(error.value) and "\n" not in str(error.value)
