"""The CI gate end to end: real git histories, real worker processes, every exit code."""

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import benchmarks.__main__ as entry
from benchmarks.gate import replicate
from benchmarks.gate.exits import Exit
from benchmarks.gate.report_markdown import MARKER

from . import histories

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture
def history(tmp_path):
    return histories.engine(tmp_path / "repository")


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    """Worktrees go where the test can count them."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    yield folder
    assert list(folder.iterdir()) == []


def gate(history, *arguments, base="base", workload=histories.WORKLOAD):
    common = ["--repository", str(history.root), "--workload", workload, "--samples", "1", "--warmups", "0"]
    code = entry.main(["gate", "--base", history.commits.get(base, base), *common, "--foreign-limit", "1", *arguments])
    assert history.worktrees() == 1
    return code


def test_a_commit_that_changes_no_work_passes(history, capsys):
    history.commit("comment", {"README": "tiny engine\n"})
    assert gate(history) == Exit.PASSED
    out = capsys.readouterr().out
    assert out.startswith("CI gate: PASSED: none of 4 metrics is slower")
    assert "exit 0: no metric is slower" in out


def test_a_slower_class_is_named_with_size_certainty_and_what_to_run_next(history, tmp_path, capsys):
    history.commit("refactor", {"README": "x\n"})
    history.commit("slow", histories.model(attention=430))
    reports = ("--json", str(tmp_path / "v.json"), "--junit", str(tmp_path / "v.xml"), "--markdown", str(tmp_path / "v.md"))
    assert gate(history, *reports) == Exit.REGRESSED
    out = capsys.readouterr().out
    assert "REGRESSED: prefill@64/attention is slower by +7." in out
    assert f"again: python -m benchmarks gate --base {history.commits['base'][:10]} --head" in out
    assert f"--repository {history.root}" in out
    assert "next:  python -m benchmarks bisect --metric prefill@64/attention" in out

    verdict = json.loads((tmp_path / "v.json").read_text())
    assert (verdict["exit"], verdict["culprit"]) == (1, "prefill@64/attention")
    attention = next(f for f in verdict["findings"] if f["name"] == "prefill@64/attention")
    assert attention["low"] > 0.02
    assert attention["low"] < 0.075 < attention["high"]
    (ledger,) = verdict["ledgers"]
    assert [move["name"] for move in ledger["tax"]] == ["attention"]
    assert ledger["net_seconds"] == pytest.approx(30e-6, rel=0.3)
    assert len(verdict["series"]["prefill@64/wall"]["base"]) == verdict["pairs"]

    suite = ElementTree.parse(tmp_path / "v.xml").getroot()[0]
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert "prefill@64/attention" in failed
    assert suite.get("failures") == str(len(failed))

    comment = (tmp_path / "v.md").read_text()
    assert comment.startswith(MARKER)
    assert "**prefill@64/attention**" in comment
    assert "python -m benchmarks bisect" in comment


def test_a_hidden_tax_behind_a_faster_wall_is_booked_and_red(history, capsys):
    history.commit("trade", histories.model(matmul=700, norm=120))
    assert gate(history) == Exit.REGRESSED
    out = capsys.readouterr().out
    assert "prefill@64/norm is slower" in out
    assert "won" in out
    assert "matmul -3" in out
    assert "norm +" in out
    assert "next:  git show" in out


def test_the_trailer_lets_a_known_trade_pass_and_says_so(history, tmp_path, capsys, monkeypatch):
    message = "Trade norm for matmul\n\nRegression-Accepted: the prepass pays for itself\n"
    history.commit("trade", histories.model(matmul=700, norm=120), message)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert gate(history) == Exit.PASSED
    assert f"accepted by {history.commits['trade'][:10]}: the prepass pays for itself" in capsys.readouterr().out
    assert "Regression accepted" in (tmp_path / "summary.md").read_text()
    history.commit("later", {"README": "later\n"})
    assert gate(history, base="trade") == Exit.PASSED
    assert "accepted earlier (1 in all):" in capsys.readouterr().out


def test_noise_that_hides_the_answer_is_undecided_never_green(history, capsys):
    history.commit("same", {"README": "y\n"})
    arguments = ("--set", "spread=0.3", "--max-pairs", "6", "--metric", "*/wall")
    assert gate(history, *arguments) == Exit.UNDECIDED
    out = capsys.readouterr().out
    assert "cannot tell yet for 1 of 1 metrics: prefill@64/wall" in out
    assert "--resume   # goes on from the pairs already taken" in out
    assert gate(history, *arguments, "--allow-undecided", "--resume") == Exit.PASSED
    assert "let pass by --allow-undecided" in capsys.readouterr().out


def test_resume_goes_on_from_the_pairs_already_taken(history, capsys):
    history.commit("same", {"README": "y\n"})
    assert gate(history, "--max-pairs", "4") == Exit.UNDECIDED
    assert gate(history, "--resume") == Exit.PASSED
    captured = capsys.readouterr()
    assert "gate: resumed 4 pairs" in captured.err
    assert "gate: 5 pairs" in captured.err
    assert "  6 pairs in" in captured.out


def test_a_damaged_state_file_is_named(history, capsys):
    history.commit("same", {"README": "y\n"})
    gate(history, "--max-pairs", "1")
    (state,) = (history.root / ".git" / "minfer-gate").glob("*.json")
    state.write_text(state.read_text()[:50])
    assert gate(history, "--resume") == Exit.FAILED
    assert f"--resume: cannot read {state}" in capsys.readouterr().err


def test_a_crash_in_one_arm_names_the_arm_and_its_last_words(history, tmp_path, capsys):
    history.commit("broken", {"tinyengine/model.py": "def prefill():\n    raise ValueError('no such layer: 7')\n"})
    assert gate(history, "--json", str(tmp_path / "v.json"), "--junit", str(tmp_path / "v.xml")) == Exit.FAILED
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("benchmarks gate: head: tinyengine.bench:sample failed with exit code 1")
    assert error.endswith("ValueError: no such layer: 7")
    assert json.loads((tmp_path / "v.json").read_text())["exit"] == 2
    assert "no such layer" in (tmp_path / "v.xml").read_text()


def test_a_killed_arm_and_a_hanging_arm_are_told_apart(history, capsys):
    history.commit("killed", {"tinyengine/model.py": "import os\ndef prefill():\n    os.kill(os.getpid(), 9)\n"})
    assert gate(history) == Exit.FAILED
    assert "failed with signal SIGKILL; it said nothing on stderr" in capsys.readouterr().err
    history.commit("hangs", {"tinyengine/model.py": "import time\ndef prefill():\n    time.sleep(60)\n"})
    assert gate(history, "--timeout", "0.5") == Exit.FAILED
    assert "head: no answer within 0 s" in capsys.readouterr().err


def test_a_base_without_the_api_is_nothing_measured(history, capsys):
    assert gate(history, base="old") == Exit.NOTHING_MEASURED
    error = capsys.readouterr().err
    assert "(no module tinyengine.bench); choose a later --base" in error
    assert "Traceback" not in error


def test_a_head_that_lost_the_api_failed(history, capsys):
    history.git("rm", "-q", "tinyengine/bench.py")
    history.commit("lost", {})
    assert gate(history) == Exit.FAILED
    assert "no longer offers what tinyengine.bench:sample measures" in capsys.readouterr().err


def test_one_commit_against_itself_and_a_pattern_without_match_measure_nothing(history, capsys):
    assert gate(history) == Exit.NOTHING_MEASURED
    assert "are the same commit" in capsys.readouterr().err
    history.commit("same", {"README": "y\n"})
    assert gate(history, "--metric", "decode*", "--max-pairs", "1") == Exit.NOTHING_MEASURED
    assert "--metric decode*: matches none of prefill@64/wall, " in capsys.readouterr().err


def test_a_machine_that_is_not_alone_is_unfit(history, monkeypatch, capsys):
    history.commit("same", {"README": "y\n"})
    monkeypatch.setattr(replicate, "quarantine_reason", lambda conditions: "not alone: process 7 on the GPU")
    assert gate(history) == Exit.UNFIT
    captured = capsys.readouterr()
    assert "6 of 6 pairs quarantined, the last one: base not alone: process 7 on the GPU; head not" in captured.err
    assert "pair quarantined" in captured.err
    assert gate(history, "--budget", "0.01") == Exit.UNFIT
    assert "every pair was quarantined, the last one: base not alone" in capsys.readouterr().err


def test_a_base_that_head_does_not_come_from_is_said(history, capsys):
    fork = history.commits["base"]
    history.commit("main goes on", {"README": "main\n"})
    history.git("checkout", "-q", "-b", "topic", fork)
    history.commit("topic", {"NOTES": "topic\n"})
    assert gate(history, base="main goes on") == Exit.PASSED
    assert f"base is no ancestor of head, so what only base has is part of the difference; --base {fork[:10]}" in (
        capsys.readouterr().out
    )


def test_a_fault_of_the_gate_itself_is_never_read_as_a_slow_commit(history, monkeypatch, capsys):
    history.commit("same", {"README": "y\n"})

    def broken(*_):
        raise ZeroDivisionError("in the gate")

    monkeypatch.setattr("benchmarks.commands.gate.compare", broken)
    assert gate(history) == Exit.FAILED
    assert "ZeroDivisionError: in the gate" in capsys.readouterr().err


def test_a_full_disk_is_said_and_leaves_nothing(history, monkeypatch, capsys, temporary_folder):
    history.commit("same", {"README": "y\n"})
    assert gate(history, "--json", "/dev/full", "--max-pairs", "1") == Exit.UNFIT
    assert "no space left for /dev/full" in capsys.readouterr().err

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("benchmarks.attribution.whole_files.os.fsync", full)
    assert gate(history) == Exit.UNFIT
    assert "saving the pairs: no space left for" in capsys.readouterr().err
    assert not list((history.root / ".git" / "minfer-gate").glob(".*"))


@pytest.mark.parametrize(
    "revision, words",
    [("nonsense", "revision 'nonsense': unknown in"), ("--output=x", "a revision cannot start with a dash")],
)
def test_an_unknown_revision_is_one_line(history, capsys, revision, words):
    assert entry.main(["gate", f"--base={revision}", "--repository", str(history.root)]) == Exit.FAILED
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--workload", "nocolon"], "--workload 'nocolon': expected MODULE:FUNCTION"),
        (["--set", "spread"], "--set 'spread': expected NAME=VALUE"),
        (["--model", "/nowhere.gguf"], "--model /nowhere.gguf: no such file"),
        (["--json", "/nowhere/v.json"], "/nowhere/v.json: cannot be written"),
        (["--json", "/"], "/: cannot be written"),
        (["--repository", "/nowhere"], "/nowhere: no such folder"),
    ],
)
def test_an_option_that_cannot_be_used_is_one_line_before_anything_is_measured(history, capsys, arguments, words):
    history.commit("same", {"README": "y\n"})
    told = ["gate", "--base", history.commits["base"], "--repository", str(history.root), *arguments]
    assert entry.main(told) == Exit.FAILED
    error = capsys.readouterr().err
    assert error.startswith(f"benchmarks gate: {words}")
    assert error.count("\n") == 1


@pytest.mark.parametrize("option", ["--margin=0", "--margin=2", "--floor-us=-1", "--budget=nan", "--samples=0"])
def test_a_number_out_of_range_is_refused_by_the_parser(capsys, option):
    with pytest.raises(SystemExit, match="2"):
        entry.main(["gate", "--base", "HEAD", option])
    assert "expected" in capsys.readouterr().err


def test_a_shallow_clone_says_how_to_deepen_it(history, tmp_path, capsys):
    history.commit("same", {"README": "y\n"})
    subprocess.run(["git", "clone", "-q", "--depth", "1", history.root.as_uri(), str(tmp_path / "shallow")], check=True)
    assert entry.main(["gate", "--base", history.commits["base"], "--repository", str(tmp_path / "shallow")]) == Exit.FAILED
    assert "fetch-depth: 0" in capsys.readouterr().err


def test_an_unborn_head_and_a_folder_without_git_are_said(tmp_path, capsys):
    empty = histories.empty(tmp_path / "empty")
    assert entry.main(["gate", "--base", "HEAD", "--repository", str(empty.root)]) == Exit.FAILED
    assert "no commit yet (HEAD is unborn)" in capsys.readouterr().err
    (tmp_path / "plain").mkdir()
    assert entry.main(["gate", "--base", "HEAD", "--repository", str(tmp_path / "plain")]) == Exit.FAILED
    assert "not in a git checkout" in capsys.readouterr().err


def test_uncommitted_work_is_not_judged_in_silence(history, capsys):
    history.commit("same", {"README": "y\n"})
    (history.root / "tinyengine" / "model.py").write_text("edited = True\n")
    assert gate(history) == Exit.FAILED
    assert "has uncommitted changes (tinyengine/model.py)" in capsys.readouterr().err
    assert gate(history, "--head", "HEAD") == Exit.PASSED
    assert "note:  uncommitted changes are not measured: tinyengine/model.py" in capsys.readouterr().out


def test_a_figure_of_the_wrong_checkout_is_refused(history, tmp_path, capsys, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "minfer").mkdir(parents=True)
    (elsewhere / "minfer" / "__init__.py").write_text("")
    bench = f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\nimport minfer\n" + histories.BENCH
    history.commit("astray", {"tinyengine/bench.py": bench})
    assert gate(history) == Exit.FAILED
    assert "not from the measured checkout" in capsys.readouterr().err


def test_what_a_workload_prints_does_not_spoil_its_report(history):
    noisy = histories.BENCH.replace("    prefill()\n", "    prefill()\n    print('chatter')\n")
    history.commit("chatter", {"tinyengine/bench.py": noisy})
    assert gate(history) == Exit.PASSED


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "cancelled by CI"])
def test_an_interrupted_run_removes_its_worktrees_and_can_go_on(history, temporary_folder, number):
    slow = histories.BENCH.replace("    prefill()\n", "    prefill()\n    import time; time.sleep(0.3)\n")
    history.commit("slow bench", {"tinyengine/bench.py": slow})
    command = [sys.executable, "-m", "benchmarks", "gate", "--base", history.commits["base"], "--samples", "1"]
    command += ["--warmups", "0", "--repository", str(history.root), "--workload", histories.WORKLOAD]
    command += ["--foreign-limit", "1"]
    process = subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    for line in process.stderr:
        if line.startswith("gate: 1 pairs"):
            process.send_signal(number)
            break
    assert process.wait(30) == Exit.INTERRUPTED
    assert "interrupted" in process.stderr.read()
    process.stderr.close()
    assert history.worktrees() == 1
    assert list(temporary_folder.iterdir()) == []
    (state,) = (history.root / ".git" / "minfer-gate").glob("*.json")
    assert len(json.loads(state.read_text())["pairs"]) >= 1


def test_what_a_killed_run_left_behind_is_removed_by_the_next(history, temporary_folder):
    history.commit("same", {"README": "y\n"})
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = temporary_folder / f"minfer-gate-{gone.pid}-abc"
    left.mkdir()
    history.git("worktree", "add", "--detach", "-q", str(left / "base"), "HEAD")
    assert history.worktrees() == 2
    assert gate(history, "--max-pairs", "1") == Exit.UNDECIDED
    assert not left.exists()
