"""The queue of a foreign trace: what its gaps, its uncovered copies and its dearer classes would give back."""

from __future__ import annotations

from dataclasses import replace

from .record import Decomposition, Machine, Model, Record, Wall, Window
from .recover import Entry, queue


def foreign_queue(part: Decomposition, source: str, tokens: int | None) -> tuple[Entry, ...]:
    """Entries of the core's queue for one decomposed wall.

    A foreign trace brings no peer and no ceilings, so gaps, copies and the best of its own classes are the targets. Without
    ``tokens`` nothing is said of tokens per second.
    """
    wall = Wall(source, "", "", tokens or 0, 0, {}, (part.wall_ns,), decomposition=part)
    record = Record(
        "", "", Machine("foreign", "", 0, 0, "", ""), Window("foreign", "", ""), source, 0,
        Model("", "", "", 0, {}), (wall,),
    )  # fmt: skip
    entries = queue(record, wall)
    if tokens is not None:
        return entries
    return tuple(_without_speed(item) for item in entries)


def _without_speed(item: Entry) -> Entry:
    chain = tuple(step for step in item.chain if not step.startswith("0 tokens"))
    return replace(item, tokens_per_second_if_won=None, chain=chain)
