"""What a user's mistake looks like: one line on standard error, exit code 2, no traceback."""

import os
import subprocess
import sys

import pytest

from minfer import cli
from minfer.errors import MinferError


def lines(capsys):
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_help_names_every_command(capsys):
    assert cli.main(["--help"]) == 0
    assert "run" in lines(capsys)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "minfer: no command 'nonsense'; there are: "),
        (["run"], "minfer run: the following arguments are required: FILE; see minfer run --help"),
        (["run", "no.gguf", "-p", "x"], "minfer run: no.gguf: cannot be read (No such file or directory)"),
        (["run", "no.gguf", "-p", "x", "--temp", "-1"], "minfer run: temperature is -1.0, expected 0 to "),
        (["run", "no.gguf", "-p", "x", "-n", "many"], "minfer run: argument -n/--tokens: 'many' is no whole number"),
        (["run", "no.gguf", "-p", "x", "--gate", "bt"], "minfer run: gate setting 'bt': expected name=value"),
        (["run", "no.gguf", "-p", "x", "--system", "y"], "minfer run: --system needs --chat"),
        (["run", "no.gguf", "-f", "nothing.txt"], "minfer run: nothing.txt: cannot be read"),
        (["run", "no.gguf", "-p", "x", "--backend", "tpu"], "minfer run: argument --backend: invalid choice: 'tpu'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert cli.main(arguments) == 2
    out, err = lines(capsys)
    assert out == ""
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_ctrl_c_and_memory_are_one_line(monkeypatch, capsys):
    class Module:
        SUMMARY = "raises"
        error: BaseException = KeyboardInterrupt()

        @staticmethod
        def add_arguments(parser):
            """None."""

        @staticmethod
        def run(args):
            raise Module.error

    monkeypatch.setattr(cli, "_command", lambda name: Module)
    assert cli.main(["run"]) == 130
    assert lines(capsys)[1] == "\nminfer run: interrupted\n"
    Module.error = MemoryError("cannot allocate 9 GiB")
    assert cli.main(["run"]) == 2
    assert lines(capsys)[1].startswith("minfer run: out of memory (cannot allocate 9 GiB)")
    Module.error = OSError(28, "No space left on device")
    assert cli.main(["run"]) == 2
    assert lines(capsys)[1] == "minfer run: No space left on device; check the disk and the permissions\n"
    Module.error = MinferError("file x: seen 3,\n   expected 4")
    assert cli.main(["run"]) == 2
    assert lines(capsys)[1] == "minfer run: file x: seen 3, expected 4\n"


def test_a_reader_that_goes_away_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run([sys.executable, "-m", "minfer", "--help"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert process.stderr == b""
    assert process.returncode == 141
