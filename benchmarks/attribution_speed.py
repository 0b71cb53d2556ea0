"""How long ``attribute`` takes and how much memory, over the size of a trace; beside HolisticTraceAnalysis on one file.

The tool is always that of the current checkout, so these benchmarks run for its own commit and are skipped for others:
``asv run HEAD^! --bench attribution_speed``. Bars: 1 M kernels in 5 s (sqlite) and 30 s (gzipped JSON), within 2 GiB.

Measured once by hand on two shared cores (100,000 kernels, 500,000 events of gzipped JSON, three runs each, spread under
3 %): HolisticTraceAnalysis 0.5.0, two of its breakdowns: 11.2 s of processor time, 0.75 GB; attribute: 1.5 s, 0.28 GB. One
million kernels: 2.2 s and 0.33 GB (sqlite), 10.5 s and 0.67 GB (gzipped JSON); ten million (sqlite): 31 s, 2.8 GB.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .attribution.git import GitError, run_git
from .trace_files import write_kineto_json, write_nsys_sqlite

SIZES = tuple(int(text) for text in os.environ.get("MINFER_SPEED_KERNELS", "10000,100000,1000000").split(","))
WRITERS: dict[str, Callable[[Path, int], None]] = {"sqlite": write_nsys_sqlite, "json.gz": write_kineto_json}


def _skip_other_commits() -> None:
    commit = os.environ.get("ASV_COMMIT")
    if not commit:
        return
    try:
        head = run_git(Path(__file__).parent, "rev-parse", "HEAD")
    except GitError:
        return
    if head != commit:
        raise NotImplementedError("the tool is the current checkout's: measured for its own commit only")


def attribute_quietly(path: str) -> None:
    """The whole command, its answer thrown away."""
    from .__main__ import main

    with contextlib.redirect_stdout(io.StringIO()):
        code = main(["attribute", path, "--json"])
    if code:
        raise RuntimeError(f"attribute {path} ended with {code}")


class Attribute:
    """The whole command on a made trace."""

    params: list[list[Any]] = [list(WRITERS), list(SIZES)]
    param_names = ["format", "kernels"]
    version = "1"
    timeout = 600
    number, repeat, rounds, warmup_time = 1, (1, 3, 60.0), 1, 0.0

    def setup_cache(self) -> dict[str, str]:
        """Files stay in asv's folder for the run: making them must not count as the tool's memory."""
        _skip_other_commits()
        made: dict[str, str] = {}
        for ending, writer in WRITERS.items():
            for kernels in SIZES:
                path = Path(f"trace-{kernels}.{ending}").resolve()
                writer(path, kernels)
                made[path.name] = str(path)
        return made

    def setup(self, files: dict[str, str], ending: str, kernels: int) -> None:
        _skip_other_commits()
        self.path = files[f"trace-{kernels}.{ending}"]

    def time_attribute(self, files: dict[str, str], ending: str, kernels: int) -> None:
        attribute_quietly(self.path)

    def peakmem_attribute(self, files: dict[str, str], ending: str, kernels: int) -> None:
        attribute_quietly(self.path)


class HolisticTraceAnalysis:
    """The same gzipped JSON through the tool that engineers would otherwise use; it takes a tenth of a million at most."""

    params: list[Any] = [size for size in SIZES if size <= 100_000] or [10_000]
    param_names = ["kernels"]
    version = "1"
    timeout = 600
    number, repeat, rounds, warmup_time = 1, (1, 3, 60.0), 1, 0.0

    def setup_cache(self) -> dict[int, str]:
        _skip_other_commits()
        made = {}
        for kernels in self.params:
            folder = Path(f"hta-{kernels}").resolve()
            folder.mkdir(exist_ok=True)
            write_kineto_json(folder / "rank0.json.gz", kernels)
            made[kernels] = str(folder)
        return made

    def setup(self, files: dict[int, str], kernels: int) -> None:
        _skip_other_commits()
        try:
            self.module = importlib.import_module("hta.trace_analysis")
        except ModuleNotFoundError as error:
            raise NotImplementedError("HolisticTraceAnalysis is not installed") from error

    def time_kernel_and_temporal_breakdown(self, files: dict[int, str], kernels: int) -> None:
        folder = files[kernels]
        analysis = self.module.TraceAnalysis(trace_files={0: "rank0.json.gz"}, trace_dir=folder)
        analysis.get_gpu_kernel_breakdown(visualize=False)
        analysis.get_temporal_breakdown(visualize=False)


Attribute.time_attribute.unit = "s"  # type: ignore[attr-defined]
Attribute.peakmem_attribute.unit = "bytes"  # type: ignore[attr-defined]
HolisticTraceAnalysis.time_kernel_and_temporal_breakdown.unit = "s"  # type: ignore[attr-defined]
