"""The calibration end to end on the tiny engine, whose bench slows a class down when it is asked to."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks.__main__ as entry
from benchmarks.attribution.statistics.calibration import IDENTICAL, read_calibrations
from benchmarks.gate.calibrate import schedule
from benchmarks.gate.compare import DETERMINISTIC
from benchmarks.gate.exits import Exit

from . import histories

CHECKOUT = Path(__file__).resolve().parents[3]
INJECTING = histories.BENCH.replace(
    "    spread =", "    for name, share in request.inject.items():\n        clock.steps[name] *= 1 + share\n    spread ="
)


@pytest.fixture
def history(tmp_path):
    history = histories.engine(tmp_path / "repository")
    history.commit("injecting", {"tinyengine/bench.py": INJECTING})
    return history


def arguments(history, tmp_path, *more):
    return ["calibrate", "--repository", str(history.root), "--workload", histories.WORKLOAD, "--foreign-limit", "1",
            "--results", str(tmp_path / "results"), "--metric", "*/wall", "--metric", "*/attention", *more]  # fmt: skip


def test_alarms_and_power_are_counted_and_stored_where_asv_does_not_look(history, tmp_path, capsys):
    told = arguments(history, tmp_path, "--identical", "2", "--slowed", "1", "--slowdown", "0.08", "--class", "attention")
    assert entry.main(told) == Exit.PASSED
    (machine,) = (tmp_path / "results").iterdir()
    (found,) = read_calibrations(machine)
    assert (found.false_alarms.count, found.false_alarms.trials) == (0, 2)
    assert (found.power("attention").count, found.power("attention").trials) == (1, 1)
    assert [trial.kind for trial in found.trials] == [IDENTICAL, "attention", IDENTICAL]
    assert found.metrics == ("prefill@64/wall", "prefill@64/attention")
    assert list(machine.rglob("*.json")) == []
    out = capsys.readouterr().out
    assert "false alarms 0/2 = 0.00% (95% interval 0.00%..84.19%)" in out
    assert "+8.0% in one class: found 1/1" in out
    assert history.worktrees() == 1


def test_an_interrupted_calibration_goes_on(history, tmp_path):
    told = arguments(history, tmp_path, "--identical", "3", "--slowed", "0")
    process = subprocess.Popen([sys.executable, "-m", "benchmarks", *told], cwd=CHECKOUT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("calibrate: 1/3"):
            process.send_signal(signal.SIGINT)
            break
    assert process.wait(30) == Exit.INTERRUPTED
    process.stderr.close()
    assert history.worktrees() == 1
    assert not (tmp_path / "results").exists()
    assert entry.main([*told, "--resume"]) == Exit.PASSED
    (machine,) = (tmp_path / "results").iterdir()
    assert read_calibrations(machine)[0].false_alarms.trials == 3
    assert not list((history.root / ".git" / "minfer-gate").glob("calibrate-*"))


def test_a_class_that_is_not_measured_is_named(history, tmp_path, capsys):
    assert entry.main(arguments(history, tmp_path, "--class", "softmax")) == Exit.FAILED
    assert "--class softmax: tinyengine.bench:sample measures matmul, attention, norm" in capsys.readouterr().err


def test_the_two_sorts_are_evenly_mixed_and_classes_take_turns():
    plan = schedule(6, 3, ["a", "b"])
    assert plan.count(IDENTICAL) == 6
    assert [kind for kind in plan if kind != IDENTICAL] == ["a", "b", "a"]
    assert plan[1] == "a"
    assert plan[-1] == IDENTICAL
    assert schedule(0, 2, ["a"]) == ["a", "a"]
    assert schedule(2, 0, []) == [IDENTICAL] * 2


def test_the_deterministic_workload_runs_without_an_engine(tmp_path, history):
    told = ["calibrate", "--repository", str(history.root), "--results", str(tmp_path / "results"), "--identical", "1"]
    assert entry.main([*told, "--slowed", "0", "--foreign-limit", "1", "--max-pairs", "1"]) == Exit.PASSED
    (machine,) = (tmp_path / "results").iterdir()
    (found,) = read_calibrations(machine)
    assert found.workload == DETERMINISTIC
    assert "CPU time" in found.clock
    assert set(found.metrics) == {"cpu/wall", "cpu/hash", "cpu/checksum", "cpu/digest", "cpu/search"}


def test_options_that_the_workload_would_not_read_are_refused(history, capsys):
    told = ["calibrate", "--repository", str(history.root), "--nt", "128", "--identical", "1", "--slowed", "0"]
    assert entry.main(told) != Exit.PASSED
    assert "--nt: workload benchmarks.gate.workloads:deterministic runs no model" in capsys.readouterr().err


def test_help_names_the_defaults_of_this_command(capsys):
    with pytest.raises(SystemExit):
        entry.main(["calibrate", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "what a process measures (default: benchmarks.gate.workloads:deterministic)" in text
    assert "samples a process drops first (default: 0)" in text
