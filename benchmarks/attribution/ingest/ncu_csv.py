"""Nsight Compute's ``ncu --csv``: one row a metric, joined here into one profile a kernel launch.

Kernels are replayed one by one under the profiler: durations and traffic hold, the timeline between kernels does not.
Names of metrics: https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path

from ..events import KernelProfile, KernelSum, Trace, TraceError
from .tables import NS_PER_UNIT

FORMAT = "ncu csv"
HEADER = re.compile(r'^"?ID"?,(?=.*"?Kernel Name"?)(?=.*"?Metric Name"?)(?=.*"?Metric Value"?).*$', re.M)
WIDE_HEADER = re.compile(r'^"?ID"?,(?=.*"?Kernel Name"?)(?!.*Metric Name).*$', re.M)
NEEDED = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SHAPE = re.compile(r"\(?\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)?")


def read(text: str, path: Path) -> Trace:
    """One profile per kernel id and process. Raises TraceError."""
    match = HEADER.search(text)
    if match is None:
        raise TraceError(f"{path}: ncu's wide form; export the long form with: ncu --import REPORT --csv --page details")
    reader = csv.DictReader(io.StringIO(text[match.start() :]), restkey="extra", restval="")
    absent = [name for name in NEEDED if name not in (reader.fieldnames or ())]
    if absent:
        raise TraceError(f"{path}: ncu's report has no column {absent[0]!r}; print it again with --csv --page details")
    metrics: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    about: dict[tuple[str, str], dict[str, str]] = {}
    for row in reader:
        if not (row["ID"] or "").strip().isdigit():
            continue  # a line of the profiled program or of ncu itself between the rows
        key = (row.get("Process ID", ""), row["ID"])
        about.setdefault(key, row)
        if row["Metric Name"] and row["Metric Value"] not in ("", "n/a"):
            metrics.setdefault(key, {}).setdefault(row["Metric Name"], (row["Metric Value"], row.get("Metric Unit") or ""))
    profiles = tuple(_profile(about[key], metrics.get(key, {}), path) for key in about)
    notes = ["kernels replayed one by one: no timeline, so busy, gaps and wall are unknown"]
    untimed = sum(profile.duration_ns is None for profile in profiles)
    if untimed:
        notes.append(f"{untimed} of {len(profiles)} kernels have no duration; profile with --metrics gpu__time_duration.sum")
    if not profiles:
        notes.append("no kernel in the report: no GPU activity was recorded")
    totals: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for profile in profiles:
        if profile.duration_ns is not None:
            totals[profile.name] += profile.duration_ns
            counts[profile.name] += 1
    return Trace(
        source_format=FORMAT,
        sums=tuple(KernelSum(name, counts[name], ns) for name, ns in totals.most_common()),
        profiles=profiles,
        notes=tuple(notes),
    )


def _profile(row: dict[str, str], metrics: dict[str, tuple[str, str]], path: Path) -> KernelProfile:
    percentages: dict[str, float] = {}
    for name, (value, unit) in metrics.items():
        if unit == "%":
            percentages[name] = _number(value, name, path)
    duration = next((metrics[name] for name in DURATION if name in metrics), None)
    duration_ns = None if duration is None else round(_number(duration[0], "duration", path) * _unit(duration[1], path))
    if duration_ns is not None and duration_ns <= 0:
        raise TraceError(f"{path}: kernel id {row['ID']} has a duration of {duration_ns} ns; the time was not collected")
    return KernelProfile(
        name=row["Kernel Name"],
        kernel_id=int(row["ID"]),
        device=int(row["Device"]) if (row.get("Device") or "").isdigit() else None,
        duration_ns=duration_ns,
        bytes_read=_bytes(metrics.get(READ), READ, path),
        bytes_written=_bytes(metrics.get(WRITTEN), WRITTEN, path),
        grid=_triple(row.get("Grid Size", "")),
        block=_triple(row.get("Block Size", "")),
        percent_of_peak=percentages,
    )


def _bytes(metric: tuple[str, str] | None, name: str, path: Path) -> int | None:
    if metric is None:
        return None
    value, unit = metric
    prefix = unit.lower().removesuffix("byte").removesuffix("bytes")
    if prefix not in _SCALE:
        raise TraceError(f"{path}: {name} in unit {unit!r}; expected byte, Kbyte, Mbyte, Gbyte or Tbyte")
    return round(_number(value, name, path) * _SCALE[prefix])


def _unit(unit: str, path: Path) -> int:
    if unit.strip().lower() not in NS_PER_UNIT or not unit.strip():
        raise TraceError(f"{path}: a duration in unit {unit!r}; expected ns, us, ms or s")
    return NS_PER_UNIT[unit.strip().lower()]


def _number(text: str, name: str, path: Path) -> float:
    try:
        value = float(text.replace(",", ""))
    except ValueError as error:
        raise TraceError(f"{path}: metric {name!r} has value {text!r}, which is no number") from error
    if value != value or value in (float("inf"), float("-inf")):
        raise TraceError(f"{path}: metric {name!r} has value {text!r}, which is no number")
    return value


def _triple(text: str) -> tuple[int, int, int] | None:
    match = _SHAPE.search(text or "")
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
