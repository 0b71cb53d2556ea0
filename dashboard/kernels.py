"""Costs of a class by shape, and the static figures of its kernels."""

from __future__ import annotations

import pandas as pd

from benchmarks.attribution.macs import us_per_gmac
from benchmarks.attribution.record import Record

from .data import Results


def cost_by_shape(record: Record, name: str) -> pd.DataFrame:
    """One row an engine, operation and shape of a class: columns engine, nt, operation, m, n, k, layers, class_ms, cost."""
    sums: dict[tuple[object, ...], list[int]] = {}
    for wall in record.walls:
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


def static_figures(found: Results, machine: str) -> pd.DataFrame:
    """The newest static figures of every source of kernels: columns source, target, then one a metric (registers, ...).

    They are asv series of ``static_kernels.StaticKernels``, parameterised by source and target.
    """
    series = found.series
    series = series[(series["machine"] == machine) & series["benchmark"].str.contains("StaticKernels.track_", regex=False)]
    if series.empty:
        return pd.DataFrame()
    values = found.values(list(series["series"])).dropna(subset=["value"])
    newest = values.sort_values("order").drop_duplicates("series", keep="last").merge(series, on="series")
    parts = newest["parameters"].str.replace("'", "").str.split(", ", n=1, expand=True)
    newest = newest.assign(source=parts[0], target=parts[1], metric=newest["benchmark"].str.split("track_").str[-1])
    table = newest.pivot_table(index=["source", "target"], columns="metric", values="value").reset_index()
    return table.rename_axis(columns=None)
