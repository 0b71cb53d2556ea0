"""Our own capture on disk: what goes in comes out, and nothing else is taken for one."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest

from benchmarks.attribution.events import OperationLabel, TraceError
from benchmarks.attribution.ingest import capture_file, open_trace
from tests.benchmarks.attribution.ingest import text_builders as text
from tests.benchmarks.attribution.ingest.builders import nsys_sqlite


def _same(one, other):
    for item in dataclasses.fields(one):
        left, right = getattr(one, item.name), getattr(other, item.name)
        if dataclasses.is_dataclass(left):
            _same(left, right)
        elif isinstance(left, np.ndarray):
            assert left.dtype == right.dtype
            assert np.array_equal(left, right)
        else:
            assert left == right, item.name


def test_a_trace_survives_the_disk(tmp_path):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", graph_nodes=(1, 2, None, None)))
    trace = dataclasses.replace(trace, window_ns=(5, 900), operations=(OperationLabel("ffn_down", "q6_K GEMM", 3, macs=7),))
    capture_file.save(trace, tmp_path / "capture")
    _same(trace, open_trace(tmp_path / "capture"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture", "t.sqlite"]


def test_a_trace_without_a_timeline_survives_too(tmp_path):
    (tmp_path / "r").write_text(text.ncu_text([(0, "gpu__time_duration.sum", "us", "6.75")]))
    trace = open_trace(tmp_path / "r")
    capture_file.save(trace, tmp_path / "capture")
    _same(trace, open_trace(tmp_path / "capture"))


def test_another_version_is_refused(tmp_path, monkeypatch):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite"))
    monkeypatch.setattr(capture_file, "VERSION", 99)
    capture_file.save(trace, tmp_path / "capture")
    monkeypatch.undo()
    with pytest.raises(TraceError, match="capture version 99, this checkout reads 1"):
        open_trace(tmp_path / "capture")


@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
def test_a_cut_capture_is_refused(tmp_path, share):
    capture_file.save(open_trace(nsys_sqlite(tmp_path / "t.sqlite")), tmp_path / "capture")
    data = (tmp_path / "capture").read_bytes()
    (tmp_path / "capture").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(TraceError, match="not a whole capture"):
        open_trace(tmp_path / "capture")


def test_a_foreign_zip_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("trace.json", "{}")
    with pytest.raises(TraceError, match="no capture of ours"):
        open_trace(tmp_path / "z")


def test_a_zip_bomb_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "z", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(capture_file.ABOUT, json.dumps({"format": capture_file.FORMAT}))
        archive.writestr("launches.start.npy", bytes(100 << 20))
    with pytest.raises(TraceError, match="decompression bomb"):
        open_trace(tmp_path / "z")


def test_wrong_fields_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr(capture_file.ABOUT, json.dumps({"format": capture_file.FORMAT, "version": 1}))
    with pytest.raises(TraceError, match="wrong fields"):
        open_trace(tmp_path / "z")
