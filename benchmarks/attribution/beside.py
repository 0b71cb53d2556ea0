"""Any two walls next to each other: what may be said of them, what may not, and why.

A pair may be divided; two commits of one engine have a ledger; anything else is only set side by side, per unit of work.
"""

from __future__ import annotations

from dataclasses import dataclass

from .pair import cost_figure
from .record import ClassTime, Decomposition, Record, Wall
from .spread import Figure, class_figure

PAIR, HISTORY, BESIDE = "pair", "history", "beside"
"""One window and the same work; one engine and machine at two times, the same work; and all the rest."""
_BF16_PEER = "transformers"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same on both sides."""

    what: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class ClassSide:
    """One class on one side."""

    ns: int
    share_of_wall: float
    """Of the traced wall, 0 to 1."""
    cost: Figure | None
    """us per GMAC; None where the work is not known."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    name: str
    a: ClassSide | None
    b: ClassSide | None


@dataclass(frozen=True, slots=True)
class Beside:
    kind: str
    """PAIR, HISTORY or BESIDE."""
    different: tuple[Difference, ...]
    same_work: bool
    """The same weights and nt, so that milliseconds may be set against milliseconds."""
    rows: tuple[ClassRow, ...]
    """Classes of either side, the larger share first; empty where a side was not decomposed."""
    clauses: tuple[str, ...]
    """What the reader must know before any number of it, each a sentence that names both sides."""


def beside(record_a: Record, wall_a: Wall, record_b: Record, wall_b: Wall) -> Beside:
    """Set two walls side by side. Nothing is refused here: the clauses say what the numbers cannot carry."""
    different = tuple(
        Difference(what, a, b)
        for what, a, b in (
            ("engine", wall_a.engine, wall_b.engine),
            ("gates", gates_text(wall_a), gates_text(wall_b)),
            ("ubatch", str(wall_a.ubatch), str(wall_b.ubatch)),
            ("commit", record_a.commit[:8], record_b.commit[:8]),
            (
                "weights",
                f"{record_a.model.name} {record_a.model.digest[:12]}",
                f"{record_b.model.name} {record_b.model.digest[:12]}",
            ),
            ("nt", str(wall_a.nt), str(wall_b.nt)),
            ("machine", record_a.machine.name, record_b.machine.name),
            ("window", record_a.window.id, record_b.window.id),
        )
        if a != b
    )
    names = {item.what for item in different}
    same_work = not names & {"weights", "nt"}
    if same_work and not names & {"machine", "window"}:
        kind = PAIR
    elif same_work and not names & {"machine", "engine"}:
        kind = HISTORY
    else:
        kind = BESIDE
    return Beside(
        kind=kind,
        different=different,
        same_work=same_work,
        rows=_rows(wall_a.decomposition, wall_b.decomposition),
        clauses=tuple(_clauses(kind, different, same_work, (wall_a, wall_b))),
    )


def gates_text(wall: Wall) -> str:
    """The gates that are on or hold a value, as text."""
    return ", ".join(f"{name}={value}" for name, value in sorted(wall.gates.items()) if value is not False) or "none"


def _clauses(kind: str, different: tuple[Difference, ...], same_work: bool, walls: tuple[Wall, Wall]) -> list[str]:
    by_name = {item.what: item for item in different}
    found = []
    if kind == BESIDE:
        # Two machines have two windows: to name those too would say nothing more.
        names = [name for name in ("machine", "window", "weights", "nt", "engine") if name in by_name]
        names = [name for name in names if name != "window" or "machine" not in by_name]
        what = "; ".join(f"{name} {by_name[name].a} against {by_name[name].b}" for name in names)
        place = "Two windows, two machines: a" if "machine" in by_name else "Two windows: a" if "window" in by_name else "A"
        found.append(f"Not a pair: {what}. {place} difference here is no regression, so there is no verdict and no ratio.")
        if same_work:
            found.append("Both sides did the same work, so milliseconds may be set against milliseconds.")
        else:
            found.append("The work differs, so milliseconds cannot be compared: cost, shares and speeds can.")
    if kind == HISTORY:
        found.append("Two windows: clocks, temperature and neighbours may differ too.")
    if kind == HISTORY and "gates" in by_name:
        found.append(f"The gates differ too: {by_name['gates'].a} against {by_name['gates'].b}.")
    if any(wall.engine == _BF16_PEER for wall in walls) and len({wall.engine for wall in walls}) > 1:
        found.append(f"{_BF16_PEER} runs 16-bit weights of the same shape, three times the memory, not the quantised file.")
    return found


def _rows(a: Decomposition | None, b: Decomposition | None) -> tuple[ClassRow, ...]:
    if a is None or b is None:
        return ()
    left, right = ({item.name: _side(item, whole.wall_ns) for item in whole.classes if item.ns} for whole in (a, b))
    rows = [ClassRow(name, left.get(name), right.get(name)) for name in dict.fromkeys([*left, *right])]
    return tuple(sorted(rows, key=lambda row: -max(side.share_of_wall for side in (row.a, row.b) if side)))


def _side(item: ClassTime, wall_ns: int) -> ClassSide:
    return ClassSide(item.ns, item.ns / wall_ns, cost_figure(class_figure(item), item.macs))
