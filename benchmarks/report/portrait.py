"""The rows of a device's portrait, the same for terminal, Markdown and HTML."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..attribution.attribute import DeviceAnswer
from ..attribution.events import BenchResult, KernelProfile
from ..attribution.macs import GMAC, us_per_gmac
from ..attribution.record import Check
from ..attribution.symbols import readable

CAUSES = {
    "host-late": "gap: host late",
    "queued": "gap: queued",
    "unknown": "gap: cause unknown",
    "host code": "gap: host code",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One part of the wall, or of the summed time where there is no wall."""

    label: str
    kind: str
    """"class", "copy" or "gap"."""
    ns: int
    share: float | None
    """Of the wall, or of the summed time where the wall is unknown."""
    share_of_busy: float | None = None
    launches: int | None = None
    gmac: float | None = None
    us_per_gmac: float | None = None


def stages_text(stages_ns: Mapping[str, int]) -> str:
    """How long a window took, in all and stage by stage, in s."""
    listed = ", ".join(f"{stage} {ns / 1e9:.1f}" for stage, ns in stages_ns.items())
    return f"{sum(stages_ns.values()) / 1e9:.0f} s: {listed}"


def rows(device: DeviceAnswer) -> list[Row]:
    """Classes, then copy-only time, then gaps; parts of no length are left out."""
    part = device.decomposition
    whole = device.summed_ns if part is None else part.wall_ns
    found = [
        Row(
            item.name,
            "class",
            item.ns,
            item.ns / whole if whole else None,
            device.share(item),
            item.launches,
            None if item.macs is None else item.macs / GMAC,
            us_per_gmac(item.ns, item.macs),
        )
        for item in device.classes
    ]
    if part is not None:
        if part.copy_ns:
            found.append(Row("copy-only (no kernel runs)", "copy", part.copy_ns, part.copy_ns / whole))
        found += [Row(CAUSES.get(cause, cause), "gap", ns, ns / whole) for cause, ns in part.gap_ns.items() if ns]
    return found


def has_work(device: DeviceAnswer) -> bool:
    """Whether the work of any class is known."""
    return any(item.macs is not None for item in device.classes)


def headline(device: DeviceAnswer) -> str:
    """The device's wall in one sentence."""
    part = device.decomposition
    title = f"device {device.device}" + (f" ({device.name})" if device.name else "")
    if part is None:
        return (
            f"{title}: {device.kernels:,} kernels, {milliseconds(device.summed_ns)} summed; "
            "wall, busy and gaps unknown (no timeline)"
        )
    gap = sum(part.gap_ns.values())
    overlap = device.summed_ns - part.busy_ns
    text = (
        f"{title}: wall {milliseconds(part.wall_ns)}"
        f" = kernels {milliseconds(part.busy_ns)} ({percent(part.busy_ns / part.wall_ns)})"
        f" + copy-only {milliseconds(part.copy_ns)} ({percent(part.copy_ns / part.wall_ns)})"
        f" + gaps {milliseconds(gap)} ({percent(gap / part.wall_ns)}); {device.kernels:,} kernels"
    )
    if overlap:
        text += f", {milliseconds(overlap)} of them overlapping (counted once)"
    return text


def queue_lines(device: DeviceAnswer) -> list[str]:
    """What could be won, with the last steps of its arithmetic."""
    lines = []
    for entry in device.queue:
        rate = entry.tokens_per_second_if_won
        speed = "" if rate is None else f", {rate:,.0f} tok/s"
        won = f"{entry.name}: {entry.recoverable.value:,.3f} ms, with {entry.target_name}"
        lines.append(f"{won}; the wall would be {entry.wall_if_won_ms:,.3f} ms{speed}")
    return lines


def copy_lines(device: DeviceAnswer) -> list[str]:
    """All copies, overlapped or not, by direction."""
    return [
        f"{item.kind}: {item.count:,} copies, {milliseconds(item.summed_ns)} summed"
        + ("" if item.bytes is None else f", {item.bytes / 1e9:.3f} GB")
        for item in device.copies
    ]


RANGE_HEADERS = ("range", "ms", "% of busy", "launches", "mostly")
RANGE_CLASSES = 3
"""Classes named beside a range; all of them are in the JSON."""


def range_rows(device: DeviceAnswer) -> list[tuple[str, ...]]:
    """Busy time by named range; empty where that was not asked for."""
    busy, places = sum(row.ns for row in device.ranges), decimals(device)
    return [
        (
            row.name,
            f"{row.ns / 1e6:,.{places}f}",
            percent(row.ns / busy if busy else None),
            f"{row.launches:,}",
            ", ".join(f"{name} {100 * ns / row.ns:.0f} %" for name, ns in row.classes[:RANGE_CLASSES]),
        )
        for row in device.ranges
    ]


def verdict(check: Check) -> str:
    return {True: "ok", False: "FAILED", None: "unknown"}[check.passed]


def figure(check: Check) -> str:
    """The check's value against its limit, in its unit."""
    if check.value is None:
        return ""
    if check.unit == "share":
        return percent(check.value) + ("" if check.limit is None else f" of at most {percent(check.limit)}")
    return f"{check.value:g} {check.unit}"


def milliseconds(ns: float) -> str:
    """Three decimals; more where a time is shorter than that."""
    value = ns / 1e6
    return f"{value:,.3f} ms" if abs(value) >= 0.01 or ns == 0 else f"{value * 1000:.3f} us"


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def number(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:,.{decimals}f}"


def decimals(device: DeviceAnswer) -> int:
    """Of milliseconds: short walls need more."""
    return 3 if max((row.ns for row in rows(device)), default=0) >= 1_000_000 else 6


BENCH_HEADERS = ("model", "nt", "generated", "ubatch", "tok/s (mean)", "median ms", "lowest to highest ms", "samples")


def bench_rows(results: Sequence[BenchResult]) -> list[tuple[str, ...]]:
    """llama-bench's speed as it reports it, beside the median, which a warm-up among few samples does not move."""
    found: list[tuple[str, ...]] = []
    for row in results:
        samples = row.samples_ns
        median = "" if not samples else f"{statistics.median(samples) / 1e6:,.3f}"
        spread = "" if not samples else f"{min(samples) / 1e6:,.3f} to {max(samples) / 1e6:,.3f}"
        cells = (row.model or "", str(row.nt), str(row.generated), "" if row.ubatch is None else str(row.ubatch))
        found.append((*cells, f"{row.tokens_per_second:,.1f}", median, spread, str(len(samples) or "")))
    return found


PROFILE_HEADERS = ("kernel", "id", "us", "MB read", "MB written", "GB/s", "% of peak: memory", "% of peak: compute")
_MEMORY_PEAK = ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput", "Memory Throughput")
_COMPUTE_PEAK = ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput")


def profile_rows(profiles: Sequence[KernelProfile]) -> list[tuple[str, ...]]:
    """Duration, traffic and throughput of each profiled kernel; empty where it was not profiled."""

    def scaled(value: float | None, factor: float) -> str:
        return "" if value is None else f"{value / factor:,.3f}"

    found: list[tuple[str, ...]] = []
    for row in profiles:
        peaks = (
            next((f"{row.percent_of_peak[name]:.2f}" for name in names if name in row.percent_of_peak), "")
            for names in (_MEMORY_PEAK, _COMPUTE_PEAK)
        )
        cells = (scaled(row.duration_ns, 1e3), scaled(row.bytes_read, 1e6), scaled(row.bytes_written, 1e6))
        found.append((readable(row.name), str(row.kernel_id), *cells, scaled(row.bytes_per_second, 1e9), *peaks))
    return found
