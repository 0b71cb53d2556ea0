"""One measurement window a commit, handed out as many asv series.

asv calls ``setup_cache`` once per commit for all classes that inherit ``FromWindow`` (it goes by where the function stands);
each benchmark then reads its own value out of the record. What a record does not hold (another machine's prompt length, a
class that this engine does not run, a peer that is not there) is NaN, which asv shows as n/a.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .attribution.checks import best_wall
from .attribution.pair import Pair, pair
from .attribution.record import ClassTime, Record, Wall, append_record, record_from_json

NTS = (128, 512, 3325)
"""Prompt lengths of all machines: a CPU measures the first two, a GPU the last two."""
CPU_NTS = (128, 512)
GPU_NTS = (512, 3325)
CLASSES = (
    "q4_K GEMM", "q6_K GEMM", "q5_0 GEMM", "q8_0 GEMM", "q4_1 GEMM", "f16 GEMM", "attention", "activation quantise",
    "weight dequantise", "norm", "rope", "elementwise", "kv write", "embedding", "logits", "copy", "unclassified",
)  # fmt: skip
"""Classes that have a series of their own; a record holds every class, also those not listed here."""
ABSENT = float("nan")


def measured_nts(on_gpu: bool) -> tuple[int, ...]:
    """MINFER_NTS ("128,512") where it is set, else the lengths of this kind of machine."""
    named = os.environ.get("MINFER_NTS")
    if named:
        return tuple(int(part) for part in named.split(","))
    return GPU_NTS if on_gpu else CPU_NTS


def samples(values: Sequence[float]) -> dict[str, Any] | float:
    """What asv stores with median, quartiles and interval (it compares such results by Mann-Whitney)."""
    return {"samples": list(values), "number": 1} if values else ABSENT


def described(unit: str, version: str = "1", direction: str = "lower") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a benchmark its unit, its direction and its version.

    The version is set by hand: asv's own is a hash of the source text, so that editing a comment loses the history. Raise
    it when the values before and after are not comparable.
    """

    def describe(function: Callable[..., Any]) -> Callable[..., Any]:
        for name, value in (("unit", unit), ("direction", direction), ("version", version)):
            setattr(function, name, value)
        return function

    return describe


class FromWindow:
    """Base of every benchmark that reads the commit's record."""

    timeout = 1800
    processes = 1
    rounds = 1

    def setup_cache(self) -> dict[str, str]:
        """Measure the commit. {"record": JSON}, or {"skipped": reason} for a commit too old to be measured."""
        from .window_cache import measure_commit

        return measure_commit()

    # asv looks for the timeout of setup_cache on the function itself.
    setup_cache.timeout = 1800  # type: ignore[attr-defined]

    def setup(self, cache: dict[str, str], *params: Any) -> None:
        self.record: Record | None = record_from_json(cache["record"], "setup_cache") if "record" in cache else None

    def wall(self, engine: str, nt: int) -> Wall | None:
        """The engine's wall at ``nt``, the fastest where it has several ubatches."""
        return best_wall(self.record.walls, engine, nt) if self.record else None

    def kernel_class(self, engine: str, nt: int, name: str) -> ClassTime | None:
        """One class of that wall."""
        wall = self.wall(engine, nt)
        classes = wall.decomposition.classes if wall and wall.decomposition else ()
        return next((found for found in classes if found.name == name), None)

    def pair_with(self, engine: str, nt: int) -> Pair | None:
        """minfer against ``engine`` at ``nt``; None where either side is missing."""
        ours, theirs = self.wall("minfer", nt), self.wall(engine, nt)
        return pair(self.record, ours, self.record, theirs) if self.record and ours and theirs else None


def keep_record(record: Record) -> Path | None:
    """File the record under the results folder that asv was given; None on a dry run."""
    folder = os.environ.get("MINFER_RESULTS_DIR")
    if not folder:
        return None
    path = Path(folder) / record.machine.name / "records" / f"{record.commit}.jsonl"
    append_record(path, record)
    return path
