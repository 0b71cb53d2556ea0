"""One record as text: the wall of each prompt length, taken apart by kernel class, beside the peer."""

from __future__ import annotations

import statistics

from tabulate import tabulate

from .attribution.checks import best_wall
from .attribution.record import ClassTime, Record, Wall


def portrait(record: Record, subject: str = "") -> str:
    """Every wall of the engine in the record, one table each."""
    model = record.model
    lines = [
        f"{record.commit[:8]} {subject}".rstrip(),
        f"{model.name} ({model.architecture}, {model.parameters / 1e6:.0f} M weights) on {record.machine.name}: "
        f"{record.machine.gpu or record.machine.cpu}, {record.window.started[:16].replace('T', ' ')} UTC",
    ]
    for nt in sorted({wall.nt for wall in record.walls if wall.engine == "minfer"}):
        ours = best_wall(record.walls, "minfer", nt)
        if ours is not None:
            lines += ["", *_wall_lines(record, ours, best_wall(record.walls, "llama.cpp", nt))]
    lines += [f"note: {note}" for note in record.notes]
    return "\n".join(lines)


def _wall_lines(record: Record, ours: Wall, peer: Wall | None) -> list[str]:
    lines = [f"nt {ours.nt}: minfer {_speed(ours)}"]
    if peer is None:
        lines[0] += "; no peer"
    else:
        ratio = statistics.median(ours.samples_ns) / statistics.median(peer.samples_ns)
        lines[0] += f"; llama.cpp {_speed(peer)} at ubatch {peer.ubatch}; minfer takes {ratio:.2f}x its time @{ours.nt}"
    part = ours.decomposition
    if part is None:
        return [*lines, f"not decomposed: {ours.why_not_decomposed}"]
    theirs = {c.name: c for c in peer.decomposition.classes} if peer is not None and peer.decomposition else {}
    rows: list[list[object]] = [_row(found, part.wall_ns, theirs.get(found.name)) for found in part.classes]
    rows.append(["copy", part.copy_ns / 1e6, 100 * part.copy_ns / part.wall_ns])
    rows += [[f"gap: {cause}", ns / 1e6, 100 * ns / part.wall_ns] for cause, ns in part.gap_ns.items()]
    rows.append(["wall (traced)", part.wall_ns / 1e6, 100.0])
    headers = ["class", "ms", "% of wall", "launches", "GMAC", "us/GMAC", "llama.cpp", f"ratio @{ours.nt}"]
    lines.append(tabulate(rows, headers, floatfmt=".2f", missingval=""))
    lines += [f"check failed: {c.name}: {c.detail}" for c in (*ours.checks, *record.checks) if c.passed is False]
    return lines


def _row(ours: ClassTime, wall_ns: int, theirs: ClassTime | None) -> list[object]:
    row: list[object] = [ours.name, ours.ns / 1e6, 100 * ours.ns / wall_ns, ours.launches]
    cost = _cost(ours)
    peer_cost = None if theirs is None else _cost(theirs)
    row += [ours.macs / 1e9 if ours.macs else None, cost, peer_cost]
    row.append(cost / peer_cost if cost and peer_cost else None)
    return row


def _cost(found: ClassTime) -> float | None:
    """us per GMAC of the median traced repetition."""
    if not found.macs:
        return None
    return float(statistics.median(found.samples_ns or (found.ns,))) / 1e3 / (found.macs / 1e9)


def _speed(wall: Wall) -> str:
    """tok/s of the median sample, with the spread of the middle half and the number of samples."""
    ordered = sorted(wall.nt / (ns / 1e9) for ns in wall.samples_ns)
    low, high = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    return f"{statistics.median(ordered):,.0f} tok/s ({low:,.0f}-{high:,.0f}, n={len(ordered)})"
