"""Two traces side by side per unit of work: a class's cost per GMAC, or per launch where its work is unknown.

Two windows seldom hold the same amount of work, so raw sums are never compared.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .attribute import Answer, DeviceAnswer
from .ledger import Ledger, ledger
from .macs import GMAC
from .pair import PairError
from .record import Check, ClassTime

MAX_MIX_DIFFERENCE = 0.05
"""How far a class's launches per unit may differ before the two windows count as different mixes of work."""
GMAC_UNIT, LAUNCH_UNIT = "GMAC", "launch"


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """One class on both sides; costs in ns per unit. ``ratio`` is b over a: under 1, b is the faster."""

    name: str
    unit: str
    a_ns: int
    b_ns: int
    a_units: float
    b_units: float

    @property
    def a_cost(self) -> float:
        return self.a_ns / self.a_units

    @property
    def b_cost(self) -> float:
        return self.b_ns / self.b_units

    @property
    def ratio(self) -> float | None:
        return self.b_cost / self.a_cost if self.a_cost else None

    @property
    def change_ns(self) -> float:
        """What b's cost would add to a's window (negative: won)."""
        return (self.b_cost - self.a_cost) * self.a_units


@dataclass(frozen=True, slots=True)
class Comparison:
    """One device of each side. ``ledger`` is None where a side has no timeline."""

    a_device: str
    b_device: str
    classes: tuple[ClassComparison, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    ledger: Ledger | None
    checks: tuple[Check, ...]


def compare(a: Answer, b: Answer) -> tuple[Comparison, ...]:
    """Compare device by device. Raises PairError where the two cannot be compared, saying why."""
    for side in (a, b):
        if side.bench_results:
            raise PairError(
                f"{side.path}: {side.format} holds speeds and no kernels, so no class can be compared; give a trace"
            )
    timelines = [all(item.decomposition is not None for item in side.devices) for side in (a, b)]
    if timelines[0] != timelines[1]:
        sums = a if not timelines[0] else b
        raise PairError(
            f"{sums.path}: {sums.format} holds sums in which overlap counts twice, the other side a timeline; "
            f"give two of a kind ({a.format} against {b.format})"
        )
    pairs = _matched(a, b)
    return tuple(_compare_devices(a, b, left, right) for left, right in pairs)


def _matched(a: Answer, b: Answer) -> list[tuple[DeviceAnswer, DeviceAnswer]]:
    if len(a.devices) == len(b.devices) == 1:
        return [(a.devices[0], b.devices[0])]
    by_id = {item.device: item for item in b.devices}
    pairs = [(item, by_id[item.device]) for item in a.devices if item.device in by_id]
    if not pairs:
        left, right = (", ".join(item.device for item in side.devices) for side in (a, b))
        raise PairError(f"{a.path} holds devices {left}, {b.path} {right}: none in common; choose with --device")
    return pairs


def _compare_devices(a: Answer, b: Answer, left: DeviceAnswer, right: DeviceAnswer) -> Comparison:
    ours, theirs = ({item.name: item for item in side.classes if item.ns} for side in (left, right))
    shared = [name for name in ours if name in theirs]
    if not shared:
        raise PairError(
            f"{a.path} and {b.path} have no kernel class in common ({_few(ours)} against {_few(theirs)}); "
            "nothing can be compared per unit of work"
        )
    classes = tuple(_class(ours[name], theirs[name]) for name in shared)
    reference = classes[0]
    book = None
    if left.decomposition is not None and right.decomposition is not None:
        book = ledger(
            left.decomposition,
            right.decomposition,
            units=(reference.a_units, reference.b_units),
            unit=f"{reference.unit} of {reference.name}",
        )
    checks = [_same_mix(classes, reference)]
    if left.name and right.name:
        same = left.name == right.name
        checks.append(Check("same kind of device", same, detail="" if same else f"{left.name} against {right.name}"))
    only_a, only_b = (tuple(name for name in x if name not in y) for x, y in ((ours, theirs), (theirs, ours)))
    return Comparison(left.device, right.device, classes, only_a, only_b, book, tuple(checks))


def _class(a: ClassTime, b: ClassTime) -> ClassComparison:
    if a.macs and b.macs:
        return ClassComparison(a.name, GMAC_UNIT, a.ns, b.ns, a.macs / GMAC, b.macs / GMAC)
    return ClassComparison(a.name, LAUNCH_UNIT, a.ns, b.ns, float(a.launches), float(b.launches))


def _same_mix(classes: tuple[ClassComparison, ...], reference: ClassComparison) -> Check:
    """Did both windows do the same work in the same proportions, so that the reference's units stand for all of it?"""
    scale = reference.b_units / reference.a_units
    off = {item.name: abs(item.b_units / item.a_units / scale - 1) for item in classes}
    worst = max(off.values())
    listed = ", ".join(f"{name} {100 * value:.1f} %" for name, value in sorted(off.items(), key=lambda pair: -pair[1])[:4])
    plural = "launches" if reference.unit == LAUNCH_UNIT else reference.unit
    amount = f"{reference.b_units:,.6g} against {reference.a_units:,.6g} {plural} of {reference.name}"
    detail = amount if worst <= MAX_MIX_DIFFERENCE else f"{amount}; off from that proportion: {listed}"
    return Check("same mix of work", worst <= MAX_MIX_DIFFERENCE, worst, MAX_MIX_DIFFERENCE, "share", detail)


def _few(names: dict[str, ClassTime]) -> str:
    return ", ".join(list(names)[:4])


def to_json(comparisons: tuple[Comparison, ...]) -> list[dict[str, Any]]:
    """The ``comparison`` that ``--json`` adds with ``--against``."""
    out = []
    for item in comparisons:
        classes = [
            {
                **asdict(row),
                "a_ns_per_unit": row.a_cost,
                "b_ns_per_unit": row.b_cost,
                "ratio": row.ratio,
                "change_ns": row.change_ns,
            }
            for row in item.classes
        ]
        out.append(
            {
                "a_device": item.a_device,
                "b_device": item.b_device,
                "classes": classes,
                "only_a": list(item.only_a),
                "only_b": list(item.only_b),
                "ledger": None if item.ledger is None else asdict(item.ledger),
                "checks": [asdict(check) for check in item.checks],
            }
        )
    return out
