"""One record as text: the wall of each prompt length, taken apart by kernel class, beside the peer."""

from __future__ import annotations

import statistics

from tabulate import tabulate

from ..attribution.checks import best_wall
from ..attribution.macs import GMAC
from ..attribution.pair import ClassPair, Pair, cost_figure, pair
from ..attribution.record import ENGINE, PEER, ClassTime, Record, Wall
from ..attribution.spread import Figure, class_figure
from .portrait import CAUSES, stages_text

ABSENT = "-"


def render_record(record: Record, subject: str = "") -> str:
    """Every wall of the engine in the record, one table each, with what the trust rules found."""
    model = record.model
    lines = [
        f"{record.commit[:8]} {subject}".rstrip(),
        f"{model.name} ({model.architecture}, {model.parameters / 1e6:,.0f} M weights) on {record.machine.name}: "
        f"{record.machine.gpu or record.machine.cpu}, {record.window.started[:16].replace('T', ' ')} UTC",
    ]
    for nt in sorted({wall.nt for wall in record.walls if wall.engine == ENGINE}):
        ours = best_wall(record.walls, ENGINE, nt)
        if ours is not None:
            lines += ["", *_wall_lines(record, ours, best_wall(record.walls, PEER, nt))]
    lines += [f"check failed: {check.name}: {check.detail}" for check in record.checks if check.passed is False]
    lines += [f"note: {note}" for note in record.notes]
    if record.window.stages_ns:
        lines.append(f"window: {stages_text(record.window.stages_ns)}")
    return "\n".join(lines)


def _wall_lines(record: Record, ours: Wall, theirs: Wall | None) -> list[str]:
    both = pair(record, ours, record, theirs) if theirs is not None else None
    lines = [f"nt {ours.nt}: minfer {_speed(ours)}; {_headline(ours, theirs, both)}"]
    part = ours.decomposition
    if part is None:
        return [*lines, f"not decomposed: {ours.why_not_decomposed}"]
    pairs = {found.name: found for found in both.classes} if both is not None else {}
    rows = [_row(found, part.wall_ns, pairs.get(found.name)) for found in part.classes]
    if part.copy_ns:
        rows.append(_part("copy, no kernel running", part.copy_ns, part.wall_ns))
    rows += [_part(CAUSES.get(cause, cause), ns, part.wall_ns) for cause, ns in part.gap_ns.items() if ns]
    rows.append(_part("wall (traced)", part.wall_ns, part.wall_ns))
    headers = ["class", "ms", "% of wall", "launches", "GMAC", "us/GMAC", f"{PEER} us/GMAC", f"ratio @{ours.nt}"]
    alignment = ("left", *("right",) * (len(headers) - 1))
    lines.append(tabulate(rows, headers, missingval=ABSENT, disable_numparse=True, colalign=alignment))
    return lines + [f"check failed @{ours.nt}: {c.name}: {_short(c.detail)}" for c in ours.checks if c.passed is False]


def _headline(ours: Wall, theirs: Wall | None, both: Pair | None) -> str:
    if theirs is None or both is None:
        return "no peer"
    ratio = f"minfer takes {_figure(both.wall_ratio)} its time @{ours.nt}"
    return f"{PEER} {_speed(theirs)} at ubatch {theirs.ubatch}; {ratio}"


def _part(name: str, ns: int, wall_ns: int) -> list[str | None]:
    return [name, f"{ns / 1e6:,.2f}", f"{100 * ns / wall_ns:.1f}", *(None,) * 5]


def _row(ours: ClassTime, wall_ns: int, both: ClassPair | None) -> list[str | None]:
    row = _part(ours.name, ours.ns, wall_ns)[:3]
    row += [f"{ours.launches:,}", f"{ours.macs / GMAC:,.2f}" if ours.macs else None]
    row += [_cost(cost_figure(class_figure(ours), ours.macs)), _cost(both.b_cost if both else None)]
    return [*row, f"{both.ratio.value:.2f}" if both else None]


def _cost(cost: Figure | None) -> str | None:
    """Four figures: a CPU's cost runs to 20,000 us per GMAC, a GPU's to 3."""
    return None if cost is None else f"{cost.value:,.0f}" if cost.value >= 1000 else f"{cost.value:.4g}"


def _figure(figure: Figure) -> str:
    if figure.interval is None:
        return f"{figure.value:.2f}x"
    return f"{figure.value:.2f}x ({figure.interval.low:.2f} to {figure.interval.high:.2f})"


def _speed(wall: Wall) -> str:
    """tok/s of the median sample, with the range of the middle half and the number of samples."""
    ordered = sorted(wall.nt / (ns / 1e9) for ns in wall.samples_ns)
    quarter = len(ordered) // 4
    middle = f"{ordered[quarter]:,.0f}-{ordered[-1 - quarter]:,.0f}, n={len(ordered)}"
    return f"{statistics.median(ordered):,.0f} tok/s ({middle})"


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"
