"""What changed between two decompositions, class by class and per unit of work: won, lost, hidden taxes, net.

A change speeds one class up and may slow others down: their growth is its hidden tax, and only the net is its gain. Where
what was won is small beside what was lost, nobody paid a tax for it: then the growth is just lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .pair import PairError
from .record import ClassTime, Decomposition, Record, Wall
from .spread import Figure, class_figure, difference, wall_figure

WON, LOST, TAX, NEW, VANISHED, UNRESOLVED = "won", "lost", "hidden tax", "new", "vanished", "unresolved"
COPY_ONLY = "copy-only"
LEAST_GAIN = 0.1
"""A class that won less than this share of what others lost is not what the change was for, unless the caller says so."""
WORTH_NAMING = 0.001
"""Of the wall: what won less than that was not the change's aim (a gap of one trace has no interval to say so)."""
NOT_PUBLISHED = "not published"
"""Everything that a source did not tell apart. A class that only the other side names may be in it, so it joins it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One class, copy-only, or one cause of gaps. Times in ns per unit of work."""

    name: str
    before: Figure | None
    """None: the class did not exist."""
    after: Figure | None
    change: Figure
    """After minus before: negative is time won."""
    kind: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The lines add up to the wall: ``-net_ns`` is the sum of their changes, exactly in ns of the two decomposed walls."""

    unit: str
    target: str | None
    """The class that the change was for: named by the caller, else the one that won most. None: nothing was won, or too
    little beside what was lost (``LEAST_GAIN``)."""
    lines: tuple[Line, ...]
    """Largest change first."""
    won_ns: float
    lost_ns: float
    tax_ns: float
    """Growth outside the target, new classes included, when the target won."""
    net_ns: float
    net: Figure
    """Of whole walls, with its interval where the walls have samples."""
    target_net_ns: float | None
    """The target's own gain minus the taxes: what the change is worth if nothing else had moved."""
    notes: tuple[str, ...] = ()


def ledger(
    before: Decomposition,
    after: Decomposition,
    *,
    units: tuple[float, float] = (1.0, 1.0),
    unit: str = "prefill",
    target: str | None = None,
    walls: tuple[Figure, Figure] | None = None,
    notes: tuple[str, ...] = (),
) -> Ledger:
    """Compare two decompositions that did ``units`` of the same work (two windows of a trace need not hold equal amounts).

    ``walls`` are the quoted walls in ns per window, where they were sampled apart from the decomposition. Raises
    ValueError for a count of units that is not positive.
    """
    if min(units) <= 0:
        raise ValueError(f"units of work must be positive, seen {units}")
    old, new = (_figures(side, count) for side, count in zip((before, after), units, strict=True))
    if NOT_PUBLISHED in old or NOT_PUBLISHED in new:
        old, new = _fold(old, new), _fold(new, old)
    changes = {name: _change(old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])}
    if target is None:
        target = _most_won(changes, WORTH_NAMING * before.wall_ns / units[0])
    target_won = target is not None and target in changes and changes[target].value < 0
    lines = [
        Line(name, old.get(name), new.get(name), change, _kind(name, old, new, change, target if target_won else None))
        for name, change in changes.items()
    ]
    lines.sort(key=lambda line: (-abs(line.change.value), line.name))
    tax = _total(lines, TAX, NEW) if target_won else 0.0
    net = before.wall_ns / units[0] - after.wall_ns / units[1]
    return Ledger(
        unit=unit,
        target=target,
        lines=tuple(lines),
        won_ns=-_total(lines, WON, VANISHED),
        lost_ns=_total(lines, LOST) if target_won else _total(lines, LOST, NEW),
        tax_ns=tax,
        net_ns=net,
        net=difference(walls[0].scaled(1 / units[0]), walls[1].scaled(1 / units[1])) if walls else Figure(net),
        target_net_ns=-changes[target].value - tax if target is not None and target_won else None,
        notes=notes,
    )


def ledger_of_records(
    record_a: Record, wall_a: Wall, record_b: Record, wall_b: Wall, *, target: str | None = None
) -> Ledger:
    """Two commits of one engine on one machine class. Raises PairError where weights, nt, engine or machine differ."""
    sides = (
        ("nt", str(wall_a.nt), str(wall_b.nt)),
        ("weights", record_a.model.digest, record_b.model.digest),
        ("engine", wall_a.engine, wall_b.engine),
        ("machine", record_a.machine.name, record_b.machine.name),
    )
    different = [f"{name} {left[:12]} against {right[:12]}" for name, left, right in sides if left != right]
    where = f"{record_a.commit[:12]} and {record_b.commit[:12]}"
    if different:
        raise PairError(f"no ledger between {where}: {'; '.join(different)}; compare like with like")
    if wall_a.decomposition is None or wall_b.decomposition is None:
        raise PairError(f"no ledger between {where}: {_why_not(wall_a) or _why_not(wall_b)}; trace both walls")
    notes: tuple[str, ...] = ()
    if record_a.window.id != record_b.window.id:
        notes = (f"windows differ ({record_a.window.id}, {record_b.window.id}): clocks and temperature may differ too",)
    return ledger(
        wall_a.decomposition,
        wall_b.decomposition,
        unit=f"prefill of {wall_a.nt} tokens",
        target=target,
        walls=(wall_figure(wall_a), wall_figure(wall_b)),
        notes=notes,
    )


def is_for_a_gain(won: float, lost: float) -> bool:
    """Whether ``won`` is enough for what was ``lost`` beside it to be its tax. Both positive, in the same unit."""
    return won > 0 and won >= LEAST_GAIN * lost


def _most_won(changes: dict[str, Figure], least: float) -> str | None:
    best = min(changes, key=lambda name: changes[name].value, default=None)
    if best is None or -changes[best].value < least:
        return None
    lost = sum(change.value for change in changes.values() if change.value > 0 and not _unresolved(change))
    return best if is_for_a_gain(-changes[best].value, lost) else None


def _unresolved(change: Figure) -> bool:
    spread = change.interval
    return change.value == 0 or (spread is not None and spread.low <= 0 <= spread.high)


def _why_not(wall: Wall) -> str:
    return "" if wall.decomposition else wall.why_not_decomposed or f"{wall.engine} was not decomposed"


def _figures(side: Decomposition, units: float) -> dict[str, Figure]:
    """Everything that adds up to the wall, in ns per unit of work."""
    found = {item.name: _of_class(item) for item in side.classes}
    if side.copy_ns:
        found[COPY_ONLY] = Figure(float(side.copy_ns))
    found.update({f"gap: {cause}": Figure(float(ns)) for cause, ns in side.gap_ns.items() if ns})
    return {name: figure.scaled(1 / units) for name, figure in found.items()}


def _fold(side: dict[str, Figure], other: dict[str, Figure]) -> dict[str, Figure]:
    """Put the classes that the other side does not name into NOT_PUBLISHED."""
    folded = {name: figure for name, figure in side.items() if name in other and name != NOT_PUBLISHED}
    rest = sum(figure.value for name, figure in side.items() if name not in folded)
    return {**folded, NOT_PUBLISHED: Figure(rest)}


def _of_class(item: ClassTime) -> Figure:
    """The decomposed wall's own value, so that the lines close; the interval is that of the repetitions around it."""
    return Figure(float(item.ns), class_figure(item).interval)


def _change(before: Figure | None, after: Figure | None) -> Figure:
    return difference(after or Figure(0.0), before or Figure(0.0))


def _kind(name: str, old: dict[str, Figure], new: dict[str, Figure], change: Figure, target: str | None) -> str:
    if name not in old:
        return NEW
    if name not in new:
        return VANISHED
    if _unresolved(change):
        return UNRESOLVED
    if change.value < 0:
        return WON
    return TAX if target is not None and name != target else LOST


def _total(lines: Iterable[Line], *kinds: str) -> float:
    return sum(line.change.value for line in lines if line.kind in kinds)
