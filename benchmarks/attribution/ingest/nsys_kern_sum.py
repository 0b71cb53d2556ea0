"""``nsys stats --report cuda_gpu_kern_sum`` (gpukernsum before 2023), as CSV, columns or a boxed table.

It knows how long each kernel ran in total and nothing of when: busy, gaps and wall stay unknown.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..events import KernelSum, Trace, TraceError
from .tables import Table, find_tables

FORMAT = "nsys cuda_gpu_kern_sum"
HEADER = re.compile(
    r"^(?=.*\bTime ?\(%\))(?=.*\bTotal Time\b)(?=.*\bInstances\b)(?=.*\bName\b)(?!.*\b(?:Category|Range)\b).*$", re.M
)
EMPTY = re.compile(r"^.*SKIPPED: .* does not contain CUDA (?:kernel|trace|GPU).* data.*$", re.M | re.I)


def read(text: str, path: Path) -> Trace:
    """The kernel sums, most time first as printed. Raises TraceError."""
    tables = find_tables(text, HEADER, path)
    sums = [row for table in tables for row in _sums(table)]
    notes = ["sums only, no timeline: busy, gaps and wall are unknown"]
    if not sums:
        notes.append("no kernel in the report: no GPU activity was recorded")
    return Trace(source_format=FORMAT, sums=tuple(sums), notes=tuple(notes))


def _sums(table: Table) -> list[KernelSum]:
    total, instances, name = table.find("Total Time"), table.find("Instances"), table.find("Name")
    if total is None or instances is None or name is None:
        raise TraceError(f"{table.where}: a kernel summary without Total Time, Instances or Name; export it again")
    if not table.rows:
        return []
    totals, counts = table.times(total), table.integers(instances)[0]
    if (totals < 0).any() or (counts < 1).any():
        raise TraceError(f"{table.where}: a kernel with a negative time or no instance; the report was edited")
    rows = zip(table.strings(name), counts.tolist(), totals.tolist(), strict=True)
    return [KernelSum(name=text, launches=count, total_ns=ns) for text, count, ns in rows]
