"""Two walls set side by side: names for the sides, the answer in one sentence, and rows for the tables."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from benchmarks.attribution.beside import Beside
from benchmarks.attribution.ledger import LOST, NEW, TAX, UNRESOLVED, VANISHED, WON, Ledger
from benchmarks.attribution.pair import Pair
from benchmarks.attribution.record import Record, Wall
from benchmarks.attribution.recover import tokens_per_second
from benchmarks.attribution.spread import wall_figure

from .portrait import with_range

Side = tuple[Record, Wall]
State = Literal["good", "bad", "unsure"]
NEUTRAL = {
    WON: "less",
    LOST: "more",
    TAX: "more",
    NEW: "only in the second",
    VANISHED: "only in the first",
    UNRESOLVED: "no difference that the samples resolve",
}
"""Where nobody changed anything, nothing was won or lost: the ledger's kinds between two engines or two machines."""


def side_names(found: Beside, before: Side, after: Side) -> tuple[str, str]:
    """What tells the sides apart, and no more: machine, commit, engine, gates, nt."""
    different = {item.what for item in found.different}
    names = []
    for (record, wall), (_, other) in ((before, after), (after, before)):
        parts = [record.machine.name] if "machine" in different else []
        parts += [record.commit[:8]] if "commit" in different and "machine" not in different else []
        parts += [wall.engine]
        # Engines, commits and machines have settings of their own: they tell apart only what is otherwise one thing.
        if not different & {"engine", "commit", "machine"}:
            parts += [f"({_telling_gates(wall, other)})"] if "gates" in different else []
            parts += [f"ubatch {wall.ubatch}"] if "ubatch" in different else []
        parts += [f"@{wall.nt}"] if "nt" in different else []
        names.append(" ".join(parts))
    return (names[0], names[1]) if names[0] != names[1] else (f"{names[0]}, first", f"{names[1]}, second")


def _telling_gates(wall: Wall, other: Wall) -> str:
    """The gates that are on, or hold a value, on this side alone; where there are none, the other side's."""
    here, there = ({name: value for name, value in one.gates.items() if value is not False} for one in (wall, other))
    own = [f"{name}={value}" for name, value in sorted(here.items()) if there.get(name) != value]
    return ", ".join(own) or "without " + ", ".join(sorted(there.keys() - here.keys()))


def history_answer(book: Ledger, names: tuple[str, str]) -> tuple[str, State]:
    """Faster, slower or neither, in one sentence; and the colour of that: good, bad or unsure."""
    net = book.net.scaled(1e-6)
    if net.interval is not None and net.interval.low <= 0 <= net.interval.high:
        low, high = abs(net.interval.low), abs(net.interval.high)
        sentence = f"No difference that the samples resolve: {names[1]} takes {_amount(net.value)} than {names[0]}, "
        return sentence + f"and may take from {low:,.3g} ms more to {high:,.3g} ms less.", "unsure"
    word: State = "good" if net.value > 0 else "bad"
    range_text = ""
    if net.interval is not None:
        ends = sorted((abs(net.interval.low), abs(net.interval.high)))
        range_text = f" ({ends[0]:,.3g} to {ends[1]:,.3g})"
    return (
        f"{'Faster' if net.value > 0 else 'Slower'}: {names[1]} takes {_amount(net.value)}{range_text} than {names[0]}.",
        word,
    )


def _amount(won_ms: float) -> str:
    return f"{abs(won_ms):,.3g} ms {'less' if won_ms >= 0 else 'more'}"


def pair_answer(both: Pair, names: tuple[str, str]) -> str:
    """The ratio of the walls, as a sentence."""
    return f"{names[0]} takes {with_range(both.wall_ratio, '.3g')} times the time of {names[1]}, at nt {both.nt}."


def ledger_rows(book: Ledger, names: tuple[str, str], words: dict[str, str] | None) -> pd.DataFrame:
    """One row a line of the ledger; the lines add up to the difference of the traced walls."""
    return pd.DataFrame(
        [
            {
                "class": line.name,
                f"{names[0]} (ms)": line.before.value / 1e6 if line.before else None,
                f"{names[1]} (ms)": line.after.value / 1e6 if line.after else None,
                "change (ms)": line.change.value / 1e6,
                "interval (ms)": f"{line.change.interval.low / 1e6:+,.3g} to {line.change.interval.high / 1e6:+,.3g}"
                if line.change.interval
                else "",
                "what": (words or {}).get(line.kind, line.kind),
            }
            for line in book.lines
        ]
    )


def pair_rows(both: Pair, names: tuple[str, str]) -> pd.DataFrame:
    """One row a class that both engines have: costs and their ratio, which is that of times where the work is not known."""
    return pd.DataFrame(
        [
            {
                "class": item.name,
                f"{names[0]} (µs/GMAC)": item.a_cost.value if item.a_cost else None,
                f"{names[1]} (µs/GMAC)": item.b_cost.value if item.b_cost else None,
                f"ratio @{both.nt}": item.ratio.value,
                "interval": f"{item.ratio.interval.low:.3g} to {item.ratio.interval.high:.3g}"
                if item.ratio.interval
                else "",
            }
            for item in (*both.classes, *([both.gemm_total] if both.gemm_total else []))
        ]
    )


def speed_rows(sides: tuple[Side, Side], names: tuple[str, str]) -> pd.DataFrame:
    """The two walls as speeds, which any two may be read by."""
    rows = []
    for name, (_, wall) in zip(names, sides, strict=True):
        total = wall_figure(wall).scaled(1e-6)
        rows.append(
            {
                "side": name,
                "nt": wall.nt,
                "tokens_per_second": tokens_per_second(wall.nt, total.value),
                "wall_ms": total.value,
                "time per token (µs)": 1e3 * total.value / wall.nt,
                "samples": len(wall.samples_ns),
            }
        )
    return pd.DataFrame(rows)


def class_rows(found: Beside, names: tuple[str, str]) -> pd.DataFrame:
    """One row a class of either side: share of its own wall, cost and rate."""
    rows = []
    for row in found.rows:
        cells: dict[str, object] = {"class": row.name}
        for form, scale in (("% of wall", 100.0), ("µs/GMAC", 1.0), ("TFLOP/s", 1.0)):
            for name, side in zip(names, (row.a, row.b), strict=True):
                cost = side.cost.value if side and side.cost else None
                value = (side.share_of_wall if side else None) if form == "% of wall" else cost
                # 2 operations a multiply-accumulate: 1e9 of them in c microseconds are 2e-3 / c TFLOP/s a microsecond.
                value = 2e3 / value if value and form == "TFLOP/s" else value
                cells[f"{name} ({form})"] = value * scale if value is not None else None
        rows.append(cells)
    return pd.DataFrame(rows).dropna(axis="columns", how="all")
