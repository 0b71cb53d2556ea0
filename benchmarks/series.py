"""One measurement window a commit, handed out as many asv series.

asv calls ``setup_cache`` once per commit for all classes that inherit ``FromWindow`` (it goes by where the function stands);
each benchmark then reads its own value out of the record. The record itself is kept beside asv's results.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .attribution.checks import best_wall
from .attribution.record import ClassTime, Record, Wall, append_record, record_from_json

NTS = (128, 512, 3325)
"""Prompt lengths of all machines: a CPU measures the first two, a GPU the last two. A series without its length is n/a."""
CPU_NTS = (128, 512)
GPU_NTS = (512, 3325)
CLASSES = (
    "q4_K GEMM", "q6_K GEMM", "q5_0 GEMM", "q8_0 GEMM", "q4_1 GEMM", "f16 GEMM", "attention", "activation quantise",
    "weight dequantise", "norm", "rope", "elementwise", "kv write", "embedding", "logits", "copy", "unclassified",
)  # fmt: skip
"""Classes that have a series of their own; a record holds every class, also those not listed here."""


def measured_nts(backend: str) -> tuple[int, ...]:
    """MINFER_NTS ("128,512") where it is set, else the lengths of this backend's machines."""
    named = os.environ.get("MINFER_NTS")
    if named:
        return tuple(int(part) for part in named.split(","))
    return GPU_NTS if backend == "cuda" else CPU_NTS


def samples(values: list[float] | tuple[float, ...]) -> dict[str, Any]:
    """What asv stores with median, quartiles and interval (it compares such results by Mann-Whitney)."""
    return {"samples": list(values), "number": 1}


class FromWindow:
    """Base of every benchmark that reads the commit's record."""

    timeout = 1800
    processes = 1
    rounds = 1

    def setup_cache(self) -> dict[str, str]:
        """Measure the commit. {"record": JSON} or, for a commit too old to be measured, {"skipped": reason}."""
        from .window_cache import measure_commit

        return measure_commit()

    # asv sees the timeout of setup_cache on the function itself.
    setup_cache.timeout = 1800  # type: ignore[attr-defined]

    def setup(self, cache: dict[str, str], *params: Any) -> None:
        if "skipped" in cache:
            raise NotImplementedError(cache["skipped"])
        self.record = record_from_json(cache["record"], "setup_cache")
        self.check_present(*params)

    def check_present(self, *params: Any) -> None:
        """Raise NotImplementedError where this machine's record holds no such value; asv then shows n/a."""
        self.wall_of("minfer", params[0])

    def wall_of(self, engine: str, nt: int) -> Wall:
        """The engine's wall at ``nt``, the fastest where it has several ubatches."""
        wall = best_wall(self.record.walls, engine, nt)
        if wall is None:
            raise NotImplementedError(f"no wall of {engine} at nt {nt}")
        return wall

    def class_of(self, engine: str, nt: int, name: str) -> ClassTime:
        """One class of that wall."""
        wall = self.wall_of(engine, nt)
        for found in wall.decomposition.classes if wall.decomposition else ():
            if found.name == name:
                return found
        raise NotImplementedError(f"no {name} in {engine} at nt {nt}")


def keep_record(record: Record) -> Path | None:
    """File the record under the results folder that asv was given; None on a dry run."""
    folder = os.environ.get("MINFER_RESULTS_DIR")
    if not folder:
        return None
    path = Path(folder) / record.machine.name / "records" / f"{record.commit}.jsonl"
    append_record(path, record)
    return path
