"""The rows of a comparison and its ledger, the same for terminal, Markdown and HTML."""

from __future__ import annotations

from dataclasses import dataclass

from ..attribution.compare import Comparison
from ..attribution.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Row:
    """One class on both sides, as text."""

    name: str
    unit: str
    a_units: str
    b_units: str
    a_cost: str
    b_cost: str
    ratio: str


HEADERS = ("class", "unit", "a units", "b units", "a us/unit", "b us/unit", "b/a")
LEDGER_HEADERS = ("part of the wall", "a us", "b us", "change us", "")


def rows(item: Comparison) -> list[Row]:
    return [
        Row(
            row.name,
            row.unit,
            f"{row.a_units:,.6g}" if row.unit != "launch" else f"{row.a_units:,.0f}",
            f"{row.b_units:,.6g}" if row.unit != "launch" else f"{row.b_units:,.0f}",
            f"{row.a_cost / 1e3:,.3f}",
            f"{row.b_cost / 1e3:,.3f}",
            "" if row.ratio is None else f"{row.ratio:.3f}",
        )
        for row in item.classes
    ]


def missing(item: Comparison) -> list[str]:
    """Classes that only one side has."""
    sides = (("a", item.only_a), ("b", item.only_b))
    return [f"only in {name}: {', '.join(classes)}" for name, classes in sides if classes]


def ledger_title(book: Ledger) -> str:
    """The net, in the direction that people speak of it."""
    word = "faster" if book.net_ns > 0 else "slower"
    net = f"b is {abs(book.net_ns) / 1e3:,.3f} us {word}" if book.net_ns else "no change"
    taxes = f"; hidden taxes {book.tax_ns / 1e3:,.3f} us beside {book.target}" if book.tax_ns and book.target else ""
    return f"ledger per {book.unit}: {net} (won {book.won_ns / 1e3:,.3f}, lost {book.lost_ns / 1e3:,.3f} us{taxes})"


def ledger_rows(book: Ledger) -> list[tuple[str, str, str, str, str]]:
    found = []
    for line in book.lines:
        before = "" if line.before is None else f"{line.before.value / 1e3:,.3f}"
        after = "" if line.after is None else f"{line.after.value / 1e3:,.3f}"
        found.append((line.name, before, after, f"{line.change.value / 1e3:+,.3f}", line.kind))
    return found
