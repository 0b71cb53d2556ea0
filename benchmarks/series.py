"""One measurement window a commit, handed out as many asv series.

asv calls ``setup_cache`` once per commit for all classes that inherit ``FromWindow`` (it goes by where the function stands).
The series are taken from the record there, once: asv starts a process for each value that it stores, and those only look
theirs up. What a record does not hold (another machine's prompt length, a class that this engine does not run, a peer that
is not there) is NaN, which asv shows as n/a.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

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


def described(unit: str, version: str = "1") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a benchmark its unit and its version; less is better in all of them, since asv takes it so.

    The version is set by hand: asv's own is a hash of the source text, so that editing a comment loses the history. Raise
    it when the values before and after are not comparable.
    """

    def describe(function: Callable[..., Any]) -> Callable[..., Any]:
        for name, value in (("unit", unit), ("direction", "lower"), ("version", version)):
            setattr(function, name, value)
        return function

    return describe


class FromWindow:
    """Base of every benchmark that reads the commit's record."""

    timeout = 1800
    processes = 1
    rounds = 1

    def setup_cache(self) -> dict[str, Any]:
        """Measure the commit: values by ``key``; empty for a commit too old to be measured."""
        from .series_values import values_of
        from .window_cache import measure_commit

        record = measure_commit()
        return {} if record is None else values_of(record)

    # asv looks for the timeout of setup_cache on the function itself.
    setup_cache.timeout = 1800  # type: ignore[attr-defined]


def key(series: str, nt: int, kernel_class: str = "") -> str:
    """Where a value stands in what ``values_of`` returns."""
    return f"{series} {nt} {kernel_class}".rstrip()


def samples(values: Sequence[float]) -> dict[str, Any] | float:
    """What asv stores with median, quartiles and interval (it compares such results by Mann-Whitney)."""
    return {"samples": list(values), "number": 1} if values else ABSENT
