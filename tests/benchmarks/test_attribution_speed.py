"""The made traces hold what they say; the benchmarks over them run, and skip other commits and what is not installed."""

import importlib.util
import os

import pytest

from benchmarks import attribution_speed, trace_files
from benchmarks.attribution.attribute import attribute
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.windows import choose

KERNELS = 4321


@pytest.mark.parametrize("ending", attribution_speed.WRITERS)
def test_a_made_trace_holds_what_it_says(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    attribution_speed.WRITERS[ending](path, KERNELS)
    trace = open_trace(path)
    answer = attribute(trace, str(path), choose(trace))
    (device,) = answer.devices
    assert device.kernels == KERNELS
    assert device.decomposition.busy_ns == sum(trace_files.kernel_length_ns(index) for index in range(KERNELS))
    assert device.decomposition.gap_ns["unknown"] == 0
    assert len(trace.api_calls) == KERNELS


def test_the_benchmarks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASV_COMMIT", raising=False)
    monkeypatch.setattr(attribution_speed, "SIZES", (300,))
    suite = attribution_speed.Attribute()
    files = suite.setup_cache()
    assert len(files) == 2
    for ending in attribution_speed.WRITERS:
        suite.setup(files, ending, 300)
        suite.time_attribute(files, ending, 300)


def test_other_commits_are_skipped(monkeypatch):
    monkeypatch.setenv("ASV_COMMIT", "0" * 40)
    with pytest.raises(NotImplementedError, match="own commit only"):
        attribution_speed.Attribute().setup({}, "sqlite", 300)


@pytest.mark.skipif(importlib.util.find_spec("hta") is not None, reason="HolisticTraceAnalysis is installed")
def test_what_is_not_installed_is_skipped(monkeypatch):
    monkeypatch.delenv("ASV_COMMIT", raising=False)
    with pytest.raises(NotImplementedError, match="not installed"):
        attribution_speed.HolisticTraceAnalysis().setup({}, 300)
    assert os.environ.get("ASV_COMMIT") is None
