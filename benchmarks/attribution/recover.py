"""What could be won next: per class, the milliseconds that it would give back at a named target, with the arithmetic.

``recoverable = ms - GMAC x target cost``, against three targets: the peer's cost, the best class of our own, and the
device's measured ceiling. The gap and the copies are entries too. Nothing is extrapolated: every number in a chain was
measured in the window of the record, or counted from shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import UserFacingError
from .macs import GMAC, us_per_gmac
from .pair import pair
from .record import Ceiling, ClassTime, Record, Wall
from .spread import Figure, Interval, class_figure, difference, wall_figure

PEER, BEST_OF_OURS, CEILING, NONE_LEFT = "peer", "best of ours", "ceiling", "none left"
ROUNDED_CEILING = "ceiling, 8-bit activations"
"""A target that changes what is computed: no answer to what comes next, unless that is wanted."""
GAP, COPY_ONLY = "gap", "copy-only"
_MS = 1e-6
_GEMM = re.compile(r"^\S+ GEMM$")
_EXACT_CEILINGS = ("f16 GEMM", "bf16 GEMM", "f32 GEMM")
"""Matrix rates that carry exact weights and activations as they are kept; fp8 carries neither, so it prices nothing."""
_EXACT_OF_GEMMS = ("int16 GEMM",)
"""Products of quantised weights may go there too: activations of 16 bits lose less than f16 ones. Attention may not."""
_ROUNDED = "int8 GEMM"
"""The rate of quantised products whose activations are rounded to 8 bits, as llama.cpp's are: a target of its own."""
_COPY_CEILING = "copy"
_UNITS = {"FLOP/s": 1.0, "OP/s": 1.0, "B/s": 1.0}
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class CeilingError(UserFacingError):
    """A ceiling whose unit is not understood."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the queue. Times in ms."""

    name: str
    """The kernel class, or GAP or COPY_ONLY."""
    target: str
    """PEER, BEST_OF_OURS, CEILING, ROUNDED_CEILING, or NONE_LEFT for the gap and the copies."""
    target_name: str
    ms: float
    recoverable: Figure
    wall_if_won_ms: float
    tokens_per_second_if_won: float | None
    """None where nothing of the wall would be left."""
    chain: tuple[str, ...]
    """The arithmetic, one step a line, each of which can be checked by hand."""


def queue(record: Record, wall: Wall, peer: tuple[Record, Wall] | None = None) -> tuple[Entry, ...]:
    """All entries with something to win, most milliseconds first. Raises PairError where ``peer`` is not a pair."""
    if wall.decomposition is None:
        return ()
    classes = wall.decomposition.classes
    total = wall_figure(wall).value * _MS
    entries = [
        *(_against_peer(record, wall, total, peer) if peer else ()),
        *_against_best_of_ours(classes, wall.nt, total),
        *(entry for item in classes for entry in _against_ceilings(item, record.ceilings, wall.nt, total)),
        *_gap_and_copies(wall, total),
    ]
    return tuple(sorted((entry for entry in entries if entry.recoverable.value > 0), key=lambda e: -e.recoverable.value))


def price(item: ClassTime, target_cost: Figure, *, nt: int, wall_ms: float, target: str, target_name: str) -> Entry | None:
    """The entry of one class at a target cost in us per GMAC; None where the class's work is not known."""
    if not item.macs:
        return None
    gmac = item.macs / GMAC
    time = class_figure(item).scaled(_MS)
    at_target = target_cost.scaled(gmac * 1e-3)
    cost = us_per_gmac(time.value / _MS, item.macs)
    chain = (
        f"{item.name}: {time.value:.3f} ms for {gmac:.3f} GMAC = {cost:.3f} us per GMAC",
        f"target: {target_name}, {target_cost.value:.3f} us per GMAC",
        f"at the target: {gmac:.3f} GMAC x {target_cost.value:.3f} us = {at_target.value:.3f} ms",
    )
    return _entry(item.name, target, target_name, time, at_target, nt, wall_ms, chain)


def tokens_per_second(nt: int, wall_ms: float) -> float:
    """nt / wall."""
    return nt / (wall_ms * 1e-3)


def ceiling_cost(ceilings: Iterable[Ceiling], kernel_class: str) -> tuple[str, float] | None:
    """Name and us per GMAC of the fastest measured matrix rate that computes what the class does: 2 operations a MAC."""
    names = (*_EXACT_CEILINGS, *(_EXACT_OF_GEMMS if _GEMM.match(kernel_class) else ()))
    return _fastest(ceilings, names)


def _fastest(ceilings: Iterable[Ceiling], names: Sequence[str]) -> tuple[str, float] | None:
    rates = [(per_second(item), item.name) for item in ceilings if item.name in names]
    if not rates:
        return None
    fastest, name = max(rates)
    return name, 2.0 * GMAC / fastest * 1e6


def _against_peer(record: Record, wall: Wall, total: float, peer: tuple[Record, Wall]) -> list[Entry]:
    compared = pair(record, wall, *peer)
    by_name = {item.name: item for item in wall.decomposition.classes} if wall.decomposition else {}
    entries = []
    for both in compared.classes:
        version = peer[1].engine_version  # llama.cpp's own begins with its name
        name = version if version.startswith(compared.b) else f"{compared.b} {version}".strip()
        if both.b_cost is not None and both.a_cost is not None:
            entry = price(by_name[both.name], both.b_cost, nt=wall.nt, wall_ms=total, target=PEER, target_name=name)
        else:
            time, theirs = both.a.scaled(_MS), both.b.scaled(_MS)
            chain = (
                f"{both.name}: {time.value:.3f} ms; no multiply-accumulates to price it by",
                f"target: {name}, {theirs.value:.3f} ms for the same weights and tokens",
            )
            entry = _entry(both.name, PEER, name, time, theirs, wall.nt, total, chain)
        if entry is not None:
            entries.append(entry)
    return entries


def _against_best_of_ours(classes: Sequence[ClassTime], nt: int, total: float) -> list[Entry]:
    costs = [
        (cost, item.name, item)
        for item in classes
        if _GEMM.match(item.name) and (cost := us_per_gmac(class_figure(item).value, item.macs)) is not None
    ]
    if len(costs) < 2:
        return []
    _, name, best = min(costs)
    target = class_figure(best).scaled(us_per_gmac(1.0, best.macs) or 0.0)
    entries = (
        price(item, target, nt=nt, wall_ms=total, target=BEST_OF_OURS, target_name=f"our {name}")
        for _, _, item in costs
        if item is not best
    )
    return [entry for entry in entries if entry is not None]


def _against_ceilings(item: ClassTime, ceilings: Sequence[Ceiling], nt: int, total: float) -> list[Entry]:
    """The ceiling of what the class computes, and for a product of quantised weights the one of rounded activations."""
    exact = ceiling_cost(ceilings, item.name)
    rounded = _fastest(ceilings, (_ROUNDED,)) if _GEMM.match(item.name) and item.macs else None
    found = [_against_ceiling(item, exact, ceilings, nt, total, CEILING)]
    if rounded is not None and (exact is None or rounded[1] < exact[1]):
        found.append(_against_ceiling(item, rounded, ceilings, nt, total, ROUNDED_CEILING))
    return [entry for entry in found if entry is not None]


def _against_ceiling(
    item: ClassTime, matrix: tuple[str, float] | None, ceilings: Sequence[Ceiling], nt: int, total: float, target: str
) -> Entry | None:
    """The slower of what the matrix units and the memory allow, where the work and the bytes are known."""
    limits: list[tuple[float, str, str]] = []
    if matrix is not None and item.macs:
        name, cost = matrix
        ms = item.macs / GMAC * cost * 1e-3
        limits.append((ms, name, f"{item.macs / GMAC:.3f} GMAC x {cost:.3f} us per GMAC ({name}) = {ms:.3f} ms"))
    copies = [per_second(ceiling) for ceiling in ceilings if ceiling.name == _COPY_CEILING]
    if copies and item.bytes:
        ms = item.bytes / max(copies) * 1e3
        limits.append((ms, "memory", f"{item.bytes / 1e9:.6f} GB at {max(copies) / 1e9:.1f} GB/s = {ms:.3f} ms"))
    if not limits:
        return None
    limit, name, _ = max(limits)
    time = class_figure(item).scaled(_MS)
    chain = (f"{item.name}: {time.value:.3f} ms", *(text for _, _, text in limits), f"the limit is {name}: {limit:.3f} ms")
    said = f"measured {name} ceiling" + (", activations rounded to 8 bits" if target == ROUNDED_CEILING else "")
    return _entry(item.name, target, said, time, Figure(limit), nt, total, chain)


def _gap_and_copies(wall: Wall, total: float) -> list[Entry]:
    assert wall.decomposition is not None
    gap = sum(wall.decomposition.gap_ns.values()) * _MS
    causes = ", ".join(f"{cause} {ns * _MS:.3f} ms" for cause, ns in wall.decomposition.gap_ns.items())
    return [
        _entry(GAP, NONE_LEFT, "no gap", Figure(gap), Figure(0.0), wall.nt, total, (f"gap: {gap:.3f} ms ({causes})",)),
        _entry(
            COPY_ONLY,
            NONE_LEFT,
            "copies hidden behind kernels",
            Figure(copies := wall.decomposition.copy_ns * _MS),
            Figure(0.0),
            wall.nt,
            total,
            (f"copies that no kernel covers: {copies:.3f} ms",),
        ),
    ]


def _entry(
    name: str,
    target: str,
    target_name: str,
    time: Figure,
    at_target: Figure,
    nt: int,
    wall_ms: float,
    chain: tuple[str, ...],
) -> Entry:
    won = difference(time, at_target)
    left = max(wall_ms - won.value, 0.0)
    rate = tokens_per_second(nt, left) if left else None
    steps = (
        *chain,
        f"recoverable: {time.value:.3f} - {at_target.value:.3f} = {won.value:.3f} ms{_range(won.interval)}",
        f"wall if won: {wall_ms:.3f} - {won.value:.3f} = {left:.3f} ms",
        f"{nt} tokens / {left * 1e-3:.6f} s = {rate:.1f} tok/s" if rate else "nothing of the wall is left",
    )
    return Entry(name, target, target_name, time.value, won, left, rate, steps)


def _range(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" ({interval.low:.3f} to {interval.high:.3f} at {interval.confidence:.1%})"


def per_second(ceiling: Ceiling) -> float:
    """A ceiling in operations or bytes per second. Raises CeilingError for a unit that is not one of those."""
    for suffix, factor in _UNITS.items():
        prefix = ceiling.unit.removesuffix(suffix)
        if ceiling.unit.endswith(suffix) and prefix in _PREFIXES:
            return ceiling.value * _PREFIXES[prefix] * factor
    raise CeilingError(f"ceiling {ceiling.name!r} is in {ceiling.unit!r}; expected FLOP/s, OP/s or B/s with a prefix")
