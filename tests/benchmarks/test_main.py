"""The dispatcher finds commands by file, and a user's mistake is one line and a non-zero exit."""

import subprocess
import sys
from types import SimpleNamespace

import benchmarks.__main__ as entry
from benchmarks.attribution.errors import UserFacingError
from tests.benchmarks.attribution.ingest.builders import nsys_sqlite


def test_unknown_command_names_the_known_ones(capsys):
    assert entry.main(["nonsense"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("benchmarks: no command 'nonsense'")
    assert error.count("\n") == 1


def test_a_user_facing_error_is_one_line_and_its_exit_code(monkeypatch, capsys):
    def run(args):
        raise UserFacingError("file x: seen 3,\n   expected 4; give another")

    fake = SimpleNamespace(SUMMARY="fails", add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(entry, "_command", lambda name: fake)
    monkeypatch.setattr(entry.pkgutil, "iter_modules", lambda path: [SimpleNamespace(name="fails")])
    assert entry.main(["fails"]) == 2
    assert capsys.readouterr().err == "benchmarks fails: file x: seen 3, expected 4; give another\n"


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "attribute", str(nsys_sqlite(tmp_path / "t")), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
