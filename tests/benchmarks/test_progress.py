"""Lines said in another process are shown while the command waits."""

import io
import re

from benchmarks import progress


def test_every_line_is_shown_and_the_file_goes(monkeypatch, tmp_path):
    path, out = tmp_path / "p" / "progress", io.StringIO()
    monkeypatch.setenv(progress.VARIABLE, str(path))
    with progress.Follow(path, out):
        progress.say("nt 512: warming up")
        progress.say("nt 512: sample 1 of 10")
    said = [re.fullmatch(r"    +\d+\.\d s  (.+)", line)[1] for line in out.getvalue().splitlines()]
    assert said == ["nt 512: warming up", "nt 512: sample 1 of 10"]
    assert not path.exists()


def test_nobody_waiting_is_no_error(monkeypatch):
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    progress.say("to nobody")
