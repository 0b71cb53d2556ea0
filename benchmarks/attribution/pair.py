"""Two engines side by side, under lock: same weights, same nt, same window, or no ratio at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import UserFacingError
from .macs import same_gmac, us_per_gmac
from .record import Check, ClassTime, Decomposition, Record, Wall
from .spread import Figure, class_figure, ratio, wall_figure

GEMM_TOTAL = "GEMM total"
_GEMM = re.compile(r"^\S+ GEMM$")


class PairError(UserFacingError):
    """Two sides that must not be divided by each other. The text names both."""


@dataclass(frozen=True, slots=True)
class ClassPair:
    """One class on both sides. Times in ns, costs in us per GMAC; the ratio is ``a / b``: over 1, ``a`` is the slower."""

    name: str
    a: Figure
    b: Figure
    a_macs: int | None
    b_macs: int | None
    a_cost: Figure | None
    b_cost: Figure | None
    ratio: Figure
    """Of costs where both are known, else of times: same weights and nt are the same work."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Everything that one window says of two engines on one model at one nt."""

    a: str
    b: str
    model: str
    nt: int
    window: str
    wall_ratio: Figure
    classes: tuple[ClassPair, ...]
    """Classes that both sides have, most of a's time first."""
    gemm_total: ClassPair | None
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    gmac_check: Check | None
    """None where a side was not decomposed."""


def refuse_unmatched(record_a: Record, wall_a: Wall, record_b: Record, wall_b: Wall) -> None:
    """Raises PairError unless both sides have the same weights, nt, machine class and window."""
    sides = (
        ("nt", str(wall_a.nt), str(wall_b.nt)),
        ("weights", record_a.model.digest[:12], record_b.model.digest[:12]),
        ("machine", record_a.machine.name, record_b.machine.name),
        ("window", record_a.window.id, record_b.window.id),
    )
    same = (
        wall_a.nt == wall_b.nt,
        record_a.model.digest == record_b.model.digest,
        record_a.machine.name == record_b.machine.name,
        record_a.window.id == record_b.window.id,
    )
    different = [side for side, equal in zip(sides, same, strict=True) if not equal]
    if different:
        what = "; ".join(
            f"{name} {left} of {wall_a.engine} against {right} of {wall_b.engine}" for name, left, right in different
        )
        raise PairError(f"no ratio across {what}; measure both sides at one nt, on one file, in one window")


def pair(record_a: Record, wall_a: Wall, record_b: Record, wall_b: Wall) -> Pair:
    """Compare two walls class by class. Raises PairError naming both sides where they are not a pair."""
    refuse_unmatched(record_a, wall_a, record_b, wall_b)
    left, right = _by_name(wall_a.decomposition), _by_name(wall_b.decomposition)
    shared = [name for name in left if name in right and left[name].ns and right[name].ns]
    check = None
    if wall_a.decomposition is not None and wall_b.decomposition is not None:
        check = same_gmac(left.values(), right.values(), (wall_a.engine, wall_b.engine))
    return Pair(
        a=wall_a.engine,
        b=wall_b.engine,
        model=record_a.model.name,
        nt=wall_a.nt,
        window=record_a.window.id,
        wall_ratio=ratio(wall_figure(wall_a), wall_figure(wall_b)),
        classes=tuple(class_pair(left[name], right[name]) for name in shared),
        gemm_total=_gemm_total(left, right),
        only_a=tuple(name for name in left if name not in right),
        only_b=tuple(name for name in right if name not in left),
        gmac_check=check,
    )


def class_pair(a: ClassTime, b: ClassTime) -> ClassPair:
    """One class of both sides, which the caller knows to be a pair."""
    left, right = class_figure(a), class_figure(b)
    left_cost, right_cost = cost_figure(left, a.macs), cost_figure(right, b.macs)
    quotient = ratio(left_cost, right_cost) if left_cost and right_cost else ratio(left, right)
    return ClassPair(a.name, left, right, a.macs, b.macs, left_cost, right_cost, quotient)


def cost_figure(time: Figure, macs: int | None) -> Figure | None:
    """Time in ns as us per GMAC; None where the work is not known."""
    unit = us_per_gmac(1.0, macs)
    return None if unit is None else time.scaled(unit)


def total_of(classes: list[ClassTime], name: str) -> ClassTime | None:
    """Several classes as one. Samples add repetition by repetition where every class has as many."""
    if not classes:
        return None
    counts = {len(item.samples_ns) for item in classes}
    samples = zip(*(item.samples_ns for item in classes), strict=True) if len(counts) == 1 else ()
    macs = [item.macs for item in classes]
    return ClassTime(
        name,
        sum(item.ns for item in classes),
        sum(item.launches for item in classes),
        macs=None if None in macs else sum(value for value in macs if value is not None),
        samples_ns=tuple(sum(sample) for sample in samples),
    )


def _gemm_total(left: dict[str, ClassTime], right: dict[str, ClassTime]) -> ClassPair | None:
    """All matrix products of each side: engines may use different classes for the same work, their total is the same."""
    a = total_of([item for name, item in left.items() if _GEMM.match(name)], GEMM_TOTAL)
    b = total_of([item for name, item in right.items() if _GEMM.match(name)], GEMM_TOTAL)
    return class_pair(a, b) if a is not None and b is not None and a.ns and b.ns else None


def _by_name(decomposition: Decomposition | None) -> dict[str, ClassTime]:
    return {item.name: item for item in decomposition.classes} if decomposition else {}
