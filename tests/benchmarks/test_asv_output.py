"""Tables of what went well are left out, and nothing that tells of a failure is."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.asv_output import run_asv, without_tables

CHECKOUT = Path(__file__).resolve().parents[2]

GOOD = """\
· Discovering benchmarks
[ 0.00%] · For minfer commit 1b3385a9 <main>:
[11.11%] ··· Setting up series:57                                     ok
[22.22%] ··· prefill.Classes.track_class_ms                           ok
[22.22%] ··· ====== ============
               nt      class
             ------ ------------
              128     q4_K GEMM
             ====== ============

[33.33%] ··· prefill.Wall.track_gap_ms                           skipped
[33.33%] ··· ====== =====
              128    n/a
             ====== =====
"""
BAD = """\
[44.44%] ··· prefill.Wall.track_tracer_cost                   1/2 failed
[44.44%] ··· ====== ========
              128    failed
              512     1.01
             ====== ========
[44.44%] ···· For parameters: 128
             Traceback (most recent call last):
             RuntimeError: no such kernel
"""


def test_tables_of_benchmarks_that_went_well_are_left_out():
    kept = list(without_tables(GOOD.splitlines(keepends=True)))
    assert kept == [line for line in GOOD.splitlines(keepends=True) if line[0] in "·[" and "==" not in line]


def test_everything_about_a_failure_is_kept_also_after_a_good_one():
    assert "".join(without_tables((GOOD + BAD).splitlines(keepends=True))).endswith(BAD)


def test_the_exit_code_odd_bytes_and_standard_error_come_through(tmp_path):
    out, errors = io.StringIO(), io.StringIO()
    script = (
        "import sys; sys.stdout.buffer.write('· begun\\n'.encode() + b'\\xff odd\\n'); "
        "print('a warning', file=sys.stderr); sys.exit(3)"
    )
    assert run_asv([sys.executable, "-c", script], tmp_path, {}, out, errors) == 3
    assert out.getvalue() == "· begun\n\ufffd odd\n"
    assert errors.getvalue() == "a warning\n"


def test_ctrl_c_waits_for_asv_to_clean_up_and_shows_no_traceback_of_its(tmp_path):
    script = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n    print('· begun', flush=True); time.sleep(60)\n"
        "finally:\n    time.sleep(0.3); pathlib.Path('cleaned').touch()\n"
    )
    ours = (
        "import os, signal, sys; from pathlib import Path; from benchmarks.asv_output import run_asv\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"run_asv([sys.executable, '-c', {script!r}], Path({str(tmp_path)!r}), os.environ, sys.stdout, sys.stderr)\n"
    )
    # A session of its own, as a terminal's job has: the signal goes to all of it.
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", ours], cwd=CHECKOUT, **pipes) as process:
        assert process.stdout.readline() == "· begun\n"
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (tmp_path / "cleaned").exists()
    assert errors.count("Traceback") == 1  # of the script above, which has no command line around it
