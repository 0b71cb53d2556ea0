"""Questions to a Snapshot, answered by DuckDB over its Parquet files: only the row groups that matter are read."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .store import Snapshot
from .tables import SCHEMAS

_lock = threading.Lock()
_connection: duckdb.DuckDBPyConnection | None = None


def _cursor() -> duckdb.DuckDBPyConnection:
    """A cursor of the process's one in-memory database; it fetches no extension and holds at most 400 MB."""
    global _connection
    with _lock:
        if _connection is None:
            settings: dict[str, str | bool | int | float | list[str]] = {
                "threads": 2,
                "memory_limit": "400MB",
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
            _connection = duckdb.connect(":memory:", config=settings)
        return _connection.cursor()


def values_of(snapshot: Snapshot, series: Sequence[int]) -> pd.DataFrame:
    """Live values of some series: columns series, source, value, low, high, n; ordered by series and source."""
    paths = snapshot.paths("values")
    if not paths or not series:
        return pd.DataFrame({name: [] for name in ("series", "source", "value", "low", "high", "n")})
    cursor = _cursor()
    cursor.register("live", snapshot.sources.select(["source"]))
    return cursor.execute(
        "SELECT series, source, value, low, high, n FROM read_parquet($paths) SEMI JOIN live USING (source) "
        "WHERE series IN (SELECT unnest($series)) AND series BETWEEN $first AND $last ORDER BY series, source",
        {"paths": paths, "series": list(series), "first": min(series), "last": max(series)},
    ).df()


def measured_series(snapshot: Snapshot) -> list[int]:
    """Numbers of the series that have a value anywhere: a benchmark that was skipped everywhere leaves one without."""
    paths = snapshot.paths("values")
    if not paths:
        return []
    cursor = _cursor()
    cursor.register("live", snapshot.sources.select(["source"]))
    rows = cursor.execute(
        "SELECT DISTINCT series FROM read_parquet($paths) SEMI JOIN live USING (source) WHERE value IS NOT NULL",
        {"paths": paths},
    ).fetchall()
    return [int(row[0]) for row in rows]


def newest_values(snapshot: Snapshot, order: pd.DataFrame, back: int) -> pd.DataFrame:
    """Of every series the newest value and the one ``back`` places before it, or the oldest where there are fewer.

    ``order``: columns source, order (place of the source's commit). Returns series, newest, before, count.
    """
    paths = snapshot.paths("values")
    if not paths:
        return pd.DataFrame({name: [] for name in ("series", "newest", "before", "count")})
    cursor = _cursor()
    cursor.register("placed", order)
    return cursor.execute(
        "WITH ranked AS (SELECT series, value, count(*) OVER (PARTITION BY series) AS n, "
        "row_number() OVER (PARTITION BY series ORDER BY placed.order DESC) AS r "
        "FROM read_parquet($paths) JOIN placed USING (source) WHERE value IS NOT NULL) "
        "SELECT series, max(value) FILTER (r = 1) AS newest, "
        "max(value) FILTER (r > 1 AND r = least($back + 1, n)) AS before, max(n) AS count "
        "FROM ranked GROUP BY series ORDER BY series",
        {"paths": paths, "back": back},
    ).df()


def stretches(snapshot: Snapshot, series: Sequence[int], order: pd.DataFrame, bins: int) -> dict[str, NDArray[Any]]:
    """Lowest, middle and highest value of series over ``bins`` equal stretches of commits.

    ``order``: columns source, order, with order from 0 to the number of commits - 1. Returns equally long columns series,
    bin, low, middle, high; a stretch without a value has no row.
    """
    paths = snapshot.paths("values")
    if not paths or not series or order.empty:
        return {name: np.zeros(0) for name in ("series", "bin", "low", "middle", "high")}
    cursor = _cursor()
    cursor.register("placed", order)
    found: dict[str, NDArray[Any]] = cursor.execute(
        "SELECT series, CAST(floor(placed.order * $bins / $count) AS INTEGER) AS bin, min(value) AS low, "
        "median(value) AS middle, max(value) AS high FROM read_parquet($paths) JOIN placed USING (source) "
        "WHERE series IN (SELECT unnest($series)) AND series BETWEEN $first AND $last AND value IS NOT NULL GROUP BY ALL",
        {"paths": paths, "series": list(series), "bins": bins, "count": int(order["order"].max()) + 1}
        | {"first": min(series), "last": max(series)},
    ).fetchnumpy()
    return found


def parts_of(snapshot: Snapshot, machine: str, nt: int) -> pd.DataFrame:
    """Live parts of all decompositions of one machine and nt, all engines and models."""
    paths = snapshot.paths("parts")
    if not paths:
        return SCHEMAS["parts"].empty_table().to_pandas()
    cursor = _cursor()
    cursor.register("live", snapshot.sources.select(["source"]))
    rows = cursor.execute(
        "SELECT * FROM read_parquet($paths) SEMI JOIN live USING (source) WHERE machine = $machine AND nt = $nt",
        {"paths": paths, "machine": machine, "nt": nt},
    ).df()
    # NaN, not pandas' NA: what is not known must fail no comparison and no format.
    return rows.astype(dict.fromkeys(("launches", "macs", "bytes"), "float64"))
