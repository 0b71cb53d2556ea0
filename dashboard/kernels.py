"""Costs of a class by shape, and the static figures of its kernels."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.attribution.checks import best_wall
from benchmarks.attribution.macs import us_per_gmac
from benchmarks.attribution.record import Record
from benchmarks.static.facts import KernelFacts
from benchmarks.static.store import StaticFigures, StaticFileError, read_static, static_path

from .text import shortened


def cost_by_shape(record: Record, name: str) -> pd.DataFrame:
    """One row an engine, operation and shape of a class: columns engine, nt, operation, m, n, k, layers, class_ms, cost."""
    sums: dict[tuple[object, ...], list[int]] = {}
    sides = dict.fromkeys((wall.engine, wall.nt) for wall in record.walls)
    # Each engine at its best: its other ubatches and gates are the same work done again.
    for wall in filter(None, (best_wall(record.walls, engine, nt) for engine, nt in sides)):
        for item in wall.decomposition.classes if wall.decomposition else ():
            for split in item.splits if item.name == name else ():
                if split.macs and split.k is not None:
                    total = sums.setdefault((wall.engine, wall.nt, split.operation, split.m, split.n, split.k), [0, 0, 0])
                    total[0] += split.ns
                    total[1] += split.macs
                    total[2] += 1
    rows = [
        dict(zip(("engine", "nt", "operation", "m", "n", "k"), key, strict=True))
        | {"layers": count, "class_ms": ns / 1e6, "cost": us_per_gmac(ns, macs)}
        for key, (ns, macs, count) in sums.items()
    ]
    return pd.DataFrame(rows)


def figures_of(results: Path, commit: str) -> tuple[StaticFigures | None, str]:
    """What the compiler made of a commit's kernels, or None and what is wrong with the file ("" where there is none)."""
    path = static_path(results, commit)
    if not path.is_file():
        return None, ""
    try:
        return read_static(path), ""
    except StaticFileError as error:
        return None, str(error)


def symbols_of(record: Record, engine: str, nt: int, name: str) -> list[str]:
    """Kernels seen in a class of the engine's best wall, most time first."""
    wall = best_wall(record.walls, engine, nt)
    classes = wall.decomposition.classes if wall is not None and wall.decomposition is not None else ()
    return [symbol for item in classes if item.name == name for symbol in item.symbols]


def kernel_rows(symbols: list[str], figures: StaticFigures | None, target: str) -> pd.DataFrame:
    """One row a kernel. One that this repository does not compile (cuBLAS) has only its name."""
    known = figures.of(target) if figures else {}
    return pd.DataFrame([{"kernel": shortened(symbol, 120), **_cells(known.get(symbol))} for symbol in symbols])


def figures_over_commits(
    costs: pd.DataFrame, symbols: dict[str, list[str]], figures: dict[str, StaticFigures], target: str
) -> pd.DataFrame:
    """One row a commit: its cost of the class, and the figures of the kernel that took most of the class's time.

    ``costs``: columns commit, short, subject, value, in order. Where that kernel is a library's (cuBLAS), it has no figures:
    those of a small kernel of ours beside it would explain nothing.
    """
    rows = []
    for row in costs.itertuples():
        known = figures[row.commit].of(target) if row.commit in figures else {}
        first = next(iter(symbols.get(row.commit, [])), "")
        cells = {"commit": row.short, "cost": row.value, **_cells(known.get(first)), "kernel": shortened(first, 60)}
        rows.append(cells | {"subject": shortened(str(row.subject), 90)})
    return pd.DataFrame(rows)


def _cells(facts: KernelFacts | None) -> dict[str, object]:
    if facts is None:
        return {"registers": None, "spills (bytes)": None, "matrix share of the main loop (%)": None}
    loop = facts.loop_per_matrix
    return {
        "registers": facts.registers,
        "spills (bytes)": facts.spill_bytes,
        # The main loop's instructions per matrix instruction, turned round.
        "matrix share of the main loop (%)": 100.0 / loop if loop else None,
        "resident warps": facts.warps_resident,
        "shared (bytes)": facts.shared_bytes,
        "code (bytes)": facts.code_bytes,
    }
