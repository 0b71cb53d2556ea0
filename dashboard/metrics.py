"""The one catalogue of what the dashboard shows: key, label, unit, direction and meaning of every quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    key: str
    label: str
    unit: str
    direction: Direction
    """Which way is better; "neither" for what only describes."""
    meaning: str

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def axis(self) -> str:
        """The label of an axis: name, unit and which way is better."""
        better = {"lower": "lower is better", "higher": "higher is better", "neither": ""}[self.direction]
        inside = ", ".join(part for part in (self.unit, better) if part)
        return f"{self.label} ({inside})" if inside else self.label


_ALL = (
    Metric("tokens_per_second", "Prefill rate", "tok/s", "higher", "Prompt tokens divided by the median untraced wall."),
    Metric(
        "seconds_per_token",
        "Time per token",
        "s",
        "lower",
        "The twin of tok/s that asv stores, because asv takes lower as better.",
    ),
    Metric(
        "wall_ms",
        "Wall",
        "ms",
        "lower",
        "Host time of one whole prefill, device synchronised; median of the untraced samples.",
    ),
    Metric(
        "time_ratio",
        "Time ratio to the peer",
        "×",
        "lower",
        "Our wall divided by the peer's: same weights, same nt, same window. Above 1, the peer is faster.",
    ),
    Metric(
        "class_ms",
        "Time",
        "ms",
        "lower",
        "Attributed time of a kernel class; where launches overlap, each instant is counted once.",
    ),
    Metric(
        "share_of_busy",
        "Share of busy",
        "%",
        "neither",
        "Class time divided by busy. Gaps and copies are outside busy, shown against the same base.",
    ),
    Metric(
        "share_of_wall",
        "Share of wall",
        "%",
        "neither",
        "Time divided by the traced wall: classes, copies and gaps together make 100 %.",
    ),
    Metric(
        "cost",
        "Cost",
        "µs/GMAC",
        "lower",
        "Class time per 1e9 multiply-accumulates, counted from shapes: the only fair unit across kernels and engines.",
    ),
    Metric(
        "gmac",
        "Work",
        "GMAC",
        "neither",
        "1e9 multiply-accumulates, counted from tensor shapes and token count, never from time.",
    ),
    Metric(
        "tflops",
        "Rate",
        "TFLOP/s",
        "higher",
        "Two floating-point (or integer) operations a multiply-accumulate, divided by time.",
    ),
    Metric(
        "share_of_ceiling",
        "Share of the ceiling",
        "%",
        "higher",
        "Rate divided by the limit of this device for this kind of work, measured in the same window.",
    ),
    Metric("launches", "Launches", "", "lower", "Kernel executions in one prefill."),
    Metric(
        "busy_ms", "Busy", "ms", "lower", "Length of the union of the intervals in which the device ran at least one kernel."
    ),
    Metric("gap_ms", "Gap", "ms", "lower", "Wall minus busy minus copy-only time, by cause: host-late, queued, unknown."),
    Metric(
        "recoverable_ms",
        "Recoverable",
        "ms",
        "neither",
        "Milliseconds that a class would give back at a named target rate: ms − GMAC × target cost.",
    ),
    Metric("won_ms", "Won", "ms", "higher", "Milliseconds that a change took off the classes that it sped up."),
    Metric(
        "tax_ms", "Hidden tax", "ms", "lower", "Milliseconds that a change added to other classes than the one it sped up."
    ),
    Metric("lost_ms", "Lost", "ms", "lower", "Milliseconds by which classes grew, with no gain beside them worth the name."),
    Metric("net_ms", "Net, traced", "ms", "higher", "By how much the traced wall became shorter; below zero it is longer."),
    Metric(
        "intensity",
        "Intensity",
        "FLOP/byte",
        "neither",
        "Operations per byte that must move at least once: which ceiling binds.",
    ),
)

CATALOGUE: dict[str, Metric] = {metric.key: metric for metric in _ALL}

# What the switch of the stacked decomposition says (and the URL holds), and the metric behind it.
DECOMPOSITION_VIEWS = {
    "ms": "class_ms",
    "share of busy": "share_of_busy",
    "share of wall": "share_of_wall",
    "us per GMAC": "cost",
}


def metric(key: str) -> Metric:
    """The metric called ``key``; KeyError for one that the catalogue lacks."""
    return CATALOGUE[key]
