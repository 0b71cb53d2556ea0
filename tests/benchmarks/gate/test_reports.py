"""What reports must never get wrong: names that could break a table or a document, undecided that looks green, signs."""

import dataclasses
import json
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.attribution.statistics.paired import Finding, Verdict, pairs_to_convict
from benchmarks.gate import report_json, report_junit, report_markdown, report_text
from benchmarks.gate.compare import Comparison, Settings
from benchmarks.gate.exits import Exit
from benchmarks.gate.replicate import Pair
from benchmarks.gate.repository import Accepted, Revision
from benchmarks.gate.verdict import conclude

BASE, HEAD = Revision("main", "b" * 40, "Base | with a pipe"), Revision("HEAD", "a" * 40, "Close <b>#1</b> for @someone")


def finding(name, verdict, base=1e-3, head=1e-3, not_slower=None, low=None):
    passes = verdict in (Verdict.SAME, Verdict.FASTER) if not_slower is None else not_slower
    return Finding(name, verdict, passes, 8, base, head, head / base - 1, low, None, 0.01, 0.02, 0.001, 0.03, False)


def result(*findings, accepted=(), commits=3, allow=False, **settings):
    pairs = (Pair({}, {}, "base", 1.0), Pair({}, {}, "head", 1.0, "throttled: thermal"))
    comparison = Comparison(pairs, (), findings, True, 12.0)
    settings = {"with_compiled": True, **settings}
    return conclude(BASE, HEAD, comparison, Settings(**settings), accepted, commits, allow)


SLOW = finding("p@8/attention", Verdict.SLOWER, 1e-3, 1.2e-3, low=0.15)
WALL = finding("p@8/wall", Verdict.SLOWER, 5e-3, 5.4e-3, low=0.05)
FAST = finding("p@8/q6_K GEMM", Verdict.FASTER, 2e-3, 1.5e-3)
OPEN = finding("p@8/norm", Verdict.UNDECIDED)
SAME = finding("p@8/rope", Verdict.SAME)


@pytest.mark.parametrize(
    "findings, accepted, allow, code",
    [
        ([SAME, FAST], (), False, Exit.PASSED),
        ([SAME, OPEN], (), False, Exit.UNDECIDED),
        ([SAME, OPEN], (), True, Exit.PASSED),
        ([SLOW, OPEN], (), True, Exit.REGRESSED),
        ([SLOW, SAME], (Accepted("c" * 40, "known"),), False, Exit.PASSED),
        ([SLOW, OPEN], (Accepted("c" * 40, "known"),), False, Exit.UNDECIDED),
        ([finding("x", Verdict.UNDECIDED, not_slower=True)], (), False, Exit.PASSED),
    ],
)
def test_exit_codes(findings, accepted, allow, code):
    assert result(*findings, accepted=accepted, allow=allow).exit is code


def test_the_culprit_is_the_class_not_the_wall_that_it_is_part_of():
    found = result(WALL, SLOW, FAST)
    assert found.culprit is SLOW
    assert found.headline == "p@8/attention is slower by +20.0% (at least +15.0%, error 1%), and 1 more"


def test_the_ledger_adds_up_and_calls_growth_beside_a_gain_hidden_tax():
    (ledger,) = result(WALL, SLOW, FAST).ledgers
    assert ledger.tax_word == "hidden tax"
    assert ledger.net_seconds == pytest.approx(0.4e-3)
    assert ledger.net_seconds == pytest.approx(-0.5e-3 + 0.2e-3 + ledger.rest_seconds)
    (alone,) = result(WALL, SLOW).ledgers
    assert alone.tax_word == "lost"
    text = report_text.render(result(WALL, SLOW, FAST))
    assert "hidden tax      +200 us   attention +200 us" in text
    assert "won             -500 us   q6_K GEMM -500 us" in text
    assert "net             +400 us   head's wall is longer by that; verdict: SLOWER" in text


def test_too_few_pairs_to_find_anything_say_how_many_could():
    few = dataclasses.replace(OPEN, detectable=None)
    pairs = pairs_to_convict(3)
    for text in (report_text.render(result(few, SAME, FAST)), report_markdown.render(result(few, SAME, FAST))):
        assert f"from {pairs} pairs" in text
        assert "+3.00%" in text  # SAME's own


def test_the_command_says_every_setting_that_is_not_the_default():
    found = result(OPEN, nt=(8, 64), most_pairs=9, budget=60.0, patterns=("p@8/*",), parameters={"a": "b c"})
    assert found.reproduce == (
        "python -m benchmarks gate --base bbbbbbbbbb --head aaaaaaaaaa --nt 8 --nt 64 --budget 60 --max-pairs 9 "
        "--set 'a=b c' --metric 'p@8/*'"
    )
    assert result(OPEN, with_compiled=False).reproduce.endswith(" --no-static")
    with_gates = result(OPEN, environment={"MINFER_GATES": "mmq=1,bt=0", "MINFER_MODEL": "/a b.gguf"})
    assert with_gates.reproduce.startswith("MINFER_GATES=mmq=1,bt=0 MINFER_MODEL='/a b.gguf' python -m benchmarks gate")
    (step,) = found.next_steps
    assert "--budget 120" in step
    assert "--max-pairs" not in step
    assert "--resume" in step


def test_the_next_budget_reaches_the_look_that_can_decide():
    pairs = tuple(Pair({}, {}, "base", 90.0) for _ in range(3))
    found = conclude(BASE, HEAD, Comparison(pairs, (), (OPEN,), False, 300.0), Settings(budget=300.0), (), 1)
    assert "--budget 600" in found.next_steps[0]
    found = conclude(BASE, HEAD, Comparison(pairs, (), (OPEN,) * 20, False, 300.0), Settings(budget=300.0), (), 1)
    assert "--budget 1020" in found.next_steps[0]


def test_one_commit_is_shown_and_several_are_bisected():
    assert result(SLOW, commits=1).next_steps[0].startswith("git show aaaaaaaaaa")
    assert "bisect --metric p@8/attention bbbbbbbbbb..aaaaaaaaaa" in result(SLOW).next_steps[0]


def test_markdown_escapes_what_a_commit_or_a_metric_may_be_called():
    text = report_markdown.render(result(finding("a|b", Verdict.SAME)))
    assert "Base \\| with a pipe" in text
    assert "@someone" not in text
    assert "<b>" not in text
    assert "| a\\|b |" in text
    assert "1 quarantined (throttled: thermal)" in text


def test_undecided_is_an_error_in_junit_and_skipped_only_where_the_user_allows_it():
    for allow, kind in ((False, "error"), (True, "skipped")):
        suite = ElementTree.fromstring(report_junit.render(result(OPEN, allow=allow)))[0]
        assert suite.find(f"testcase/{kind}") is not None


def test_control_characters_of_a_crashed_process_stay_valid_xml():
    text = report_junit.render_error(Exit.FAILED, "last words: \x00\x1b[31m\ud800 <end> & more")
    assert "last words: ??[31m? &lt;end&gt;" in text
    ElementTree.fromstring(text)


def test_every_error_report_carries_its_code():
    assert json.loads(report_json.render_error(Exit.UNFIT, "x"))["exit"] == 5
    assert "exit 5: the machine is not fit" in report_markdown.render_error(Exit.UNFIT, "x")


def test_few_pairs_show_the_limit_that_their_pass_rests_on():
    assert report_text.interval(SAME) == "at most +1.00%"
    assert report_text.interval(SLOW) == "+15.00% .. -"


@pytest.mark.parametrize("value, text", [(1.5, "1.5 s"), (0.0123, "12.3 ms"), (4.2e-5, "42 us"), (3e-9, "3 ns")])
def test_a_duration_is_written_in_the_unit_that_fits(value, text):
    assert report_text.seconds(value) == text
