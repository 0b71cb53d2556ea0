"""Decisions about changes survive the disk, one file each, and bad ones are refused."""

from dataclasses import replace

import pytest

from benchmarks.attribution import triage as t

DECISION = t.Triage("box", "prefill.Wall.track_s(512)", "a" * 40, "accepted", "traded for memory", "A. Uthor", "2026-11-29")


def test_written_and_read_back(tmp_path):
    path = t.write_triage(tmp_path, DECISION)
    assert path.parent == tmp_path / "changes"
    assert path.stat().st_mode & 0o777 == 0o644
    assert t.read_triage(tmp_path) == {DECISION.key: DECISION}
    newer = replace(DECISION, state="linked", link="https://example.org/7")
    assert t.write_triage(tmp_path, newer) == path
    assert t.read_triage(tmp_path) == {DECISION.key: newer}
    assert newer.words == "linked by A. Uthor on 2026-11-29: traded for memory (https://example.org/7)"
    t.remove_triage(tmp_path, newer)
    t.remove_triage(tmp_path, newer)
    assert t.read_triage(tmp_path) == {}


def test_any_text_comes_back_as_it_was(tmp_path):
    odd = replace(DECISION, reason='"quoted" \\ back\nnew line \x7f \x1b é 😀 = [1]')
    t.write_triage(tmp_path, odd)
    assert t.read_triage(tmp_path)[odd.key] == odd


def test_two_decisions_are_two_files(tmp_path):
    paths = {t.write_triage(tmp_path, DECISION), t.write_triage(tmp_path, replace(DECISION, machine="h200"))}
    assert len(paths) == 2 and len(t.read_triage(tmp_path)) == 2


def test_found_at_any_likely_commit_and_by_a_short_id():
    short = replace(DECISION, commit="a" * 10)
    decisions = {short.key: short}
    assert t.find_triage(decisions, "box", DECISION.series, ["b" * 40, "a" * 40]) == short
    assert t.find_triage(decisions, "box", DECISION.series, ["b" * 40]) is None
    assert t.find_triage(decisions, "other", DECISION.series, ["a" * 40]) is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"state": "wontfix"}, "give one of accepted, dismissed, linked"), ({"reason": " "}, "reason is empty"),
     ({"state": "linked"}, "needs a link")],
)  # fmt: skip
def test_bad_decisions_are_refused(tmp_path, wrong, says):
    with pytest.raises(t.TriageError, match=says):
        t.write_triage(tmp_path, replace(DECISION, **wrong))
    assert not (tmp_path / "changes").exists()


@pytest.mark.parametrize("text", ["{", "", 'format = "minfer-change-triage"\nnonsense = 1', 'format = "x"', "state = 1 = 2"])
def test_a_bad_file_is_named(tmp_path, text):
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "0.toml").write_text(text)
    with pytest.raises(t.TriageError, match=r"0\.toml: not a decision about a change"):
        t.read_triage(tmp_path)
