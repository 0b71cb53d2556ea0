"""Bisection end to end over real histories, and its search on its own."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchmarks.__main__ as entry
from benchmarks.gate.bisect import Side, search
from benchmarks.gate.exits import Exit
from benchmarks.gate.repository import Revision

from . import histories


@pytest.fixture
def history(tmp_path):
    return histories.engine(tmp_path / "repository")


def bisect(history, bad="HEAD", metric="prefill@64/attention"):
    common = ["--repository", str(history.root), "--workload", histories.WORKLOAD, "--samples", "1", "--warmups", "0"]
    range_ = f"{history.commits['base']}..{bad}"
    code = entry.main(["bisect", "--metric", metric, range_, *common, "--foreign-limit", "1", "--max-pairs", "12"])
    assert history.worktrees() == 1
    return code


def test_the_slow_commit_among_eight_is_found_and_confirmed(history, capsys):
    for index in range(4):
        history.commit(f"before {index}", {"README": f"{index}\n"})
    culprit = history.commit("attend twice", histories.model(attention=450))
    for index in range(3):
        history.commit(f"after {index}", {"README": f"again {index}\n"})
    assert bisect(history) == Exit.PASSED
    captured = capsys.readouterr()
    assert f"the commit:\n  {culprit[:10]} attend twice" in captured.out
    assert f"revert check: confirmed: without {culprit[:10]}, prefill@64/attention is back" in captured.out
    assert captured.err.count(" is good: ") + captured.err.count(" is bad: ") == 3


def test_a_commit_that_cannot_be_measured_is_passed_over_and_the_rest_named(history, capsys):
    history.commit("broken", {"tinyengine/model.py": "def prefill():\n    raise ValueError('broken')\n"})
    history.commit("fixed and slow", histories.model(attention=460))
    assert bisect(history) == Exit.UNDECIDED
    out = capsys.readouterr().out
    assert "one of 2 commits (none between could be judged):" in out
    assert "unmeasurable" in out
    assert "revert check: not made: 2 commits are left" in out


def test_a_revert_that_conflicts_is_said(history, capsys):
    culprit = history.commit("attend twice", histories.model(attention=450))
    history.commit("later edit of the same line", histories.model(attention=451))
    assert bisect(history) == Exit.UNDECIDED
    out = capsys.readouterr().out
    assert f"the commit:\n  {culprit[:10]} attend twice" in out
    assert "revert check: conflict: reverting" in out
    assert "confirm it by hand" in out


def test_a_range_without_regression_is_nothing_to_find(history, capsys):
    history.commit("same", {"README": "x\n"})
    assert bisect(history) == Exit.NOTHING_MEASURED
    assert "is not shown to be slower" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["HEAD", "--metric", "x"], "expected GOOD..BAD"),
        (["a...b", "--metric", "x"], "expected GOOD..BAD"),
        (["HEAD..HEAD"], "give --metric once"),
        (["HEAD..HEAD", "--metric", "x"], "is no ancestor of"),
    ],
)
def test_a_range_that_makes_no_sense_is_one_line(history, capsys, arguments, words):
    assert entry.main(["bisect", *arguments, "--repository", str(history.root)]) == Exit.FAILED
    error = capsys.readouterr().err
    assert words in error.splitlines()[-1]


def revisions(count):
    return [Revision(str(index), str(index) * 8, "") for index in range(count)]


@given(st.integers(1, 300), st.data())
def test_the_search_finds_the_first_bad_in_log_steps(count, data):
    first_bad = data.draw(st.integers(0, count - 1))
    tried = []

    def side(revision):
        tried.append(revision)
        return Side.BAD if int(revision.name) >= first_bad else Side.GOOD

    assert [one.name for one in search(revisions(count), side)] == [str(first_bad)]
    assert len(tried) <= math.ceil(math.log2(count)) + 1


@given(st.integers(2, 60), st.data())
def test_what_cannot_be_judged_is_never_guessed(count, data):
    first_bad = data.draw(st.integers(0, count - 1))
    unknown = data.draw(st.sets(st.integers(0, count - 2)))

    def side(revision):
        index = int(revision.name)
        return Side.UNDECIDED if index in unknown else Side.BAD if index >= first_bad else Side.GOOD

    suspects = [int(one.name) for one in search(revisions(count), side)]
    assert first_bad in suspects
    assert all(index in unknown for index in suspects[:-1])
