"""The command end to end: CSV and stored results in, lines or JSON and an exit code out."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.attribution import record as r
from benchmarks.attribution import record_files
from tests.benchmarks.attribution.test_asv_results import store
from tests.benchmarks.attribution.test_record import example

QUIET = [10.02, 9.98, 10.01, 9.97, 10.03, 10.00, 9.99, 10.04, 9.96, 10.01, 10.02, 9.98]
SLOWER = [10.21, 10.19, 10.22, 10.18, 10.20, 10.23, 10.21, 10.19]


def csv_of(path, columns, rows):
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return ["changes", "--csv", str(path)]


def one_step(path, *options):
    rows = [("prefill", position, value) for position, value in enumerate(QUIET + SLOWER, 100)]
    rows += [("quiet", position, value) for position, value in enumerate(QUIET)]
    return [*csv_of(path, ("series", "position", "value"), reversed(rows)), *options]


def test_json_is_keyed_by_series(tmp_path, capsys):
    assert main(one_step(tmp_path / "a.csv", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["quiet"] == []
    (change,) = found["prefill"]
    assert (change["index"], change["position"]) == (12, 112)
    assert change["before"] == pytest.approx(10.005) and change["after"] == pytest.approx(10.205)
    assert change["ratio"] == pytest.approx(1.02, abs=0.001)
    assert change["interval"][0] < 1.02 < change["interval"][1]


def test_lines_words_and_exit_codes(tmp_path, capsys):
    assert main(one_step(tmp_path / "a.csv")) == 0
    line, total = capsys.readouterr().out.splitlines()
    assert line.startswith("prefill: position 112: slower x1.02")
    assert total == "1 changes in 1 of 2 series (32 points)"
    assert main(one_step(tmp_path / "a.csv", "--fail-on-slower")) == 1
    assert main(one_step(tmp_path / "a.csv", "--fail-on-slower", "--direction", "higher")) == 0
    assert "prefill: position 112: faster x1.02" in capsys.readouterr().out
    assert main(one_step(tmp_path / "a.csv", "--fail-on-slower", "--newest", "5")) == 0
    assert main(one_step(tmp_path / "a.csv", "--fail-on-slower", "--series", "quiet")) == 0


def test_a_share_that_rose_because_others_shrank(tmp_path, capsys):
    rng = np.random.default_rng(5)
    rows = []
    for position in range(80):
        part = 200 * rng.lognormal(0, 0.005)
        rows.append(("q6_K GEMM", position, part, part + (800 if position < 50 else 500) * rng.lognormal(0, 0.005)))
    assert main([*csv_of(tmp_path / "a.csv", ("series", "position", "value", "wall"), rows), "--fail-on-slower"]) == 0
    first, total = capsys.readouterr().out.splitlines()
    assert first.startswith("q6_K GEMM share: position 50: only the share rose (share 20.0% -> 28.6%): others shrank x0.62")
    assert total == "1 changes in 1 of 2 series (160 points)"


def test_windows_are_one_point_each(tmp_path, capsys):
    rng = np.random.default_rng(20)
    offsets = np.repeat(rng.normal(100, 3, 12), 10)
    rows = [("s", n, value + rng.normal(0, 0.2), f"w{n // 10}") for n, value in enumerate(offsets)]
    main([*csv_of(tmp_path / "a.csv", ("series", "position", "value", "window"), rows)])
    assert capsys.readouterr().out == "0 changes in 0 of 1 series (120 points)\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("series,position,value\n", "no rows below the header"),
        ("series,position,seconds\na,1,2\n", "no column 'value'; seen 'series', 'position', 'seconds'"),
        ("series,position,value\na,1,2\na,2,nan\n", "data row 2: value is missing or NaN"),
        ("series,position,value\na,1,2\na,2,inf\n", "data row 2: value is 'inf', not a finite number"),
        ("series,position,value\na,1,fast\n", "data row 1: value is 'fast', not a finite number"),
        ("series,position,value\na,x,1\n", "data row 1: position is 'x', not a finite number"),
        ("series,position,value\na,3,1\nb,3,1\na,3,2\n", "series 'a' has position 3 twice (data rows 1 and 3)"),
        ("series,position,value\n,1,1\n", "data row 1: the series has no name"),
        ("series,position,value\na,1,2\na,2,3,4,5\n", "not a CSV"),
        ("series,position,value,wall\na,1,2,1\n", "point 0 takes 2 of a wall of 1"),
        ("series,position,value,wall\na,1,2,0\n", "a wall of 0; expected times above 0"),
    ],
)
def test_bad_csv_is_one_line_and_exit_code_2(tmp_path, capsys, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert main(["changes", "--csv", str(path)]) == 2
    out, error = capsys.readouterr()
    assert says in error and error.count("\n") == 1 and error.startswith("benchmarks changes: ") and out == ""


def test_other_bad_files(tmp_path, capsys, monkeypatch):
    assert main(["changes", "--csv", str(tmp_path / "none.csv")]) == 2
    assert main(["changes", "--csv", str(tmp_path)]) == 2
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01series")
    assert main(["changes", "--csv", str(tmp_path / "binary.csv")]) == 2
    monkeypatch.setattr("benchmarks.attribution.series_csv.LARGEST_BYTES", 10)
    assert main(one_step(tmp_path / "a.csv")) == 2
    assert main(["changes", "--results", str(tmp_path / "none")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 5
    expected = ("no such file", "not a file", "not a CSV", "split it by series", "no such folder")
    assert all(says in error for error, says in zip(errors, expected, strict=True))


@pytest.fixture
def project(tmp_path):
    """A repository of 20 commits with asv results of each, slower from the 13th commit on."""
    def git(*arguments):
        done = subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=A. Uthor", "-c", "user.email=a@example.org", *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for number, value in enumerate(QUIET + SLOWER):
        git("commit", "-q", "--allow-empty", "-m", f"Change {number}")
        commits.append(git("rev-parse", "HEAD"))
        store(tmp_path / "results", commits[-1], 1000, [value, 5.0])
    return tmp_path, commits


def test_stored_results_name_commit_and_subject_and_show_decisions(project, capsys):
    folder, commits = project
    options = ["--results", str(folder / "results"), "--repository", str(folder)]
    assert main(["changes", *options, "--fail-on-slower"]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(f'box/prefill.Wall.track_s(512): {commits[12][:10]} "Change 12": slower x1.02')
    decide = ["--decide", "accepted", "--machine", "box", "--series", "prefill.Wall.track_s(512)"]
    decide += ["--commit", commits[12][:10], "--author", "A. Uthor"]
    assert main(["changes", *options, *decide]) == 2  # no reason
    assert main(["changes", *options, *decide, "--reason", "traded for memory"]) == 0
    capsys.readouterr()
    assert main(["changes", *options, "--fail-on-slower"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(": traded for memory]")
    main(["changes", *options, "--json"])
    (change,) = json.loads(capsys.readouterr().out)["box/prefill.Wall.track_s(512)"]
    assert change["commit"] == commits[12] and change["decision"]["state"] == "accepted"


def test_records_give_shares_with_their_cause(project, capsys):
    folder, commits = project
    rng = np.random.default_rng(6)
    base = example()
    for number, commit in enumerate(commits):
        part = int(200_000 * rng.lognormal(0, 0.003))
        rest = int((800_000 if number < 10 else 500_000) * rng.lognormal(0, 0.003))
        classes = (r.ClassTime("q6_K GEMM", part, 2), r.ClassTime("attention", rest, 1))
        taken = r.Decomposition(part + rest, part + rest, 0, {}, classes)
        wall = replace(base.walls[0], decomposition=taken)
        window = replace(base.window, id=f"w{number}")
        record = replace(base, commit=commit, window=window, walls=(wall,))
        record_files.append_record(folder / "results" / "box" / "records" / f"{commit}.jsonl", record)
    main(["changes", "--results", str(folder / "results"), "--repository", str(folder), "--series", "q6_K"])
    first = capsys.readouterr().out.splitlines()[0]
    where = f'box/share of wall(m, numpy, nt 512, q6_K GEMM): {commits[10][:10]} "Change 10"'
    assert first.startswith(f"{where}: only the share rose")


def test_broken_results_are_one_line(project, capsys):
    folder, _ = project
    (folder / "results" / "box" / "bad-env.json").write_text("{")
    assert main(["changes", "--results", str(folder / "results"), "--repository", str(folder)]) == 2
    error = capsys.readouterr().err
    assert "bad-env.json: not JSON" in error and error.count("\n") == 1
