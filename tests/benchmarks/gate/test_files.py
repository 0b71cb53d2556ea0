"""A file is the old one or the new one, and who could read the folder can read it."""

import stat

import pytest

from benchmarks.attribution import record_files
from benchmarks.attribution.errors import UserFacingError
from benchmarks.gate.exits import MachineUnfitError
from benchmarks.gate.files import disk_errors, write_whole
from tests.benchmarks.attribution.test_record import example


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "write", [lambda path: write_whole(path, "x\n", "writing"), lambda path: record_files.append_record(path, example())]
)
def test_what_is_written_is_for_whoever_may_read_the_folder(tmp_path, write):
    path = tmp_path / "new" / "file"
    write(path)
    assert mode(path) == 0o644
    path.chmod(0o640)
    write(path)
    assert mode(path) == 0o640
    assert [one.name for one in path.parent.iterdir()] == ["file"]


def test_an_interrupt_half_way_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, "old\n", "writing")

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.attribution.whole_files.os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new\n", "writing")
    assert path.read_text() == "old\n"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


FULL = (MachineUnfitError, "no space left")


@pytest.mark.parametrize("number, kind, words", [(28, *FULL), (122, *FULL), (13, UserFacingError, "cannot write")])
def test_what_the_disk_refuses_is_one_line(tmp_path, number, kind, words):
    with pytest.raises(kind, match=f"saving: {words}"), disk_errors("saving", tmp_path):
        raise OSError(number, "refused")
