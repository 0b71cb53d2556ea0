"""The format is found by content, and what is no trace at all gives one line that says what to do."""

import gzip
import os

import pytest

from benchmarks.attribution.events import TraceError
from benchmarks.attribution.ingest import open_trace
from tests.benchmarks.attribution.ingest.builders import chrome_json, nsys_sqlite


def test_names_do_not_decide(tmp_path):
    assert open_trace(nsys_sqlite(tmp_path / "trace.json.gz")).source_format == "nsys sqlite"
    assert open_trace(chrome_json(tmp_path / "trace.sqlite", packed=True)).source_format == "kineto json"


REFUSED = {
    "an empty file": (b"", "is empty"),
    "blanks": (b"  \n\n", "no known format"),
    "prose": (b"hello world\n", "no known format"),
    "rubbish": (bytes(range(256)) * 40, "binary data of no known format"),
    "gzip of rubbish": (gzip.compress(bytes(range(256)) * 40), "binary data of no known format"),
    "half a gzip": (gzip.compress(os.urandom(9000))[:4000], "cut"),
    "broken gzip": (b"\x1f\x8b" + bytes(50), "corrupt gzip"),
    "sqlite in gzip": (gzip.compress(b"SQLite format 3\x00" + bytes(99)), "gunzip"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(50), "zstd archive"),
    "half a header": (b"SQLite format 3\x00", "cut"),
    "latin-1": ("Größe\n".encode("latin-1"), "not utf-8"),
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_trace_is_refused_in_one_line(tmp_path, data, expected):
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(TraceError) as error:
        open_trace(tmp_path / "t")
    assert expected in str(error.value)
    assert str(tmp_path / "t") in str(error.value)
    assert "\n" not in str(error.value)


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.attribution.ingest.source.GROWTH_CHECKED_AFTER", 1 << 20)
    layer = gzip.compress(b'{"traceEvents": [' + b" " * (30 << 20), compresslevel=9)
    (tmp_path / "t").write_bytes(layer)
    with pytest.raises(TraceError, match="decompression bomb"):
        open_trace(tmp_path / "t")


def test_a_directory_a_missing_file_and_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, expected in (
        (tmp_path, "is a directory"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "pipe", "regular file"),
    ):
        with pytest.raises(TraceError) as error:
            open_trace(path)
        assert expected in str(error.value)
        assert str(error.value).count(str(path)) == 1


def test_a_profiler_report_is_refused_with_the_command_that_exports_it(tmp_path):
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(bytes(range(256)))
    with pytest.raises(TraceError) as error:
        open_trace(report)
    assert f"nsys export --type sqlite --output {tmp_path / 'run.sqlite'} {report}" in str(error.value)
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(b"NVR\x00" + bytes(99))
    with pytest.raises(TraceError, match="ncu --import"):
        open_trace(report)
