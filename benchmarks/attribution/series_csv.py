"""Series from any CSV with the columns series, position and value; also window, wall and commit where they are there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import UserFacingError

REQUIRED = ("series", "position", "value")
OPTIONAL = ("window", "wall", "commit")
LARGEST_BYTES = 2 << 30
"""About 80 million rows; reading takes some three times the file's size in memory."""


class CsvError(UserFacingError):
    """A CSV that cannot be examined."""


@dataclass(frozen=True, slots=True)
class CsvSeries:
    """One series in order of position: all arrays have one shape (points,)."""

    name: str
    positions: NDArray[np.float64]
    values: NDArray[np.float64]
    walls: NDArray[np.float64] | None
    """Whole time that ``values`` are a part of, in the same unit."""
    windows: tuple[str, ...] | None
    commits: tuple[str, ...] | None


def read_series_csv(path: Path) -> list[CsvSeries]:
    """Every series of the file, in order of first appearance. Raises CsvError."""
    import pandas as pd

    table = _table(path)
    missing = [name for name in REQUIRED if name not in table.columns]
    if missing:
        seen = ", ".join(map(repr, table.columns[:8]))
        raise CsvError(f"{path}: no column {missing[0]!r}; seen {seen}; expected {', '.join(REQUIRED)}")
    if table.empty:
        raise CsvError(f"{path}: no rows below the header; give at least one point")
    numbers = {name: _numbers(path, table, name) for name in ("position", "value", "wall") if name in table.columns}
    unnamed = np.flatnonzero(table["series"].fillna("").eq("").to_numpy())
    if len(unnamed):
        raise CsvError(f"{path}: data row {unnamed[0] + 1}: the series has no name")
    codes, names = pd.factorize(table["series"])
    order = np.lexsort((numbers["position"], codes))
    codes, sorted_numbers = codes[order], {name: column[order] for name, column in numbers.items()}
    same = (codes[1:] == codes[:-1]) & (np.diff(sorted_numbers["position"]) == 0)
    if same.any():
        at = int(np.flatnonzero(same)[0])
        position, rows = sorted_numbers["position"][at], sorted(order[at : at + 2] + 1)
        raise CsvError(
            f"{path}: series {names[codes[at]]!r} has position {position:g} twice (data rows {rows[0]} and {rows[1]}); "
            f"give each point its own"
        )
    texts = {name: table[name].fillna("").to_numpy()[order] for name in ("window", "commit") if name in table.columns}
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    found = []
    for low, high in pairwise(edges):
        part = slice(low, high)
        labels = {name: tuple(column[part].tolist()) for name, column in texts.items()}
        walls = sorted_numbers["wall"][part] if "wall" in sorted_numbers else None
        found.append(
            CsvSeries(
                str(names[codes[low]]), sorted_numbers["position"][part], sorted_numbers["value"][part], walls,
                labels.get("window"), labels.get("commit"),
            )
        )  # fmt: skip
    return found


def _table(path: Path) -> Any:
    import pandas as pd

    try:
        size = path.stat().st_size
        if not path.is_file():
            raise CsvError(f"{path}: not a file; give a CSV with the columns {', '.join(REQUIRED)}")
        if size > LARGEST_BYTES:
            raise CsvError(f"{path}: {size / 2**30:.1f} GiB, at most {LARGEST_BYTES >> 30} GiB are read; split it by series")
        # Only in numbers does "NA" mean missing: a series may be called so.
        gaps = {name: ["", "NaN", "nan", "NA", "N/A", "null", "None"] for name in ("position", "value", "wall")}
        texts = dict.fromkeys(("series", "window", "commit"), str)
        how: dict[str, Any] = {"skipinitialspace": True, "encoding": "utf-8-sig", "low_memory": False}
        return pd.read_csv(path, dtype=texts, na_values=gaps, keep_default_na=False, **how)
    except FileNotFoundError as error:
        raise CsvError(f"{path}: no such file") from error
    except pd.errors.EmptyDataError as error:
        raise CsvError(f"{path}: the file is empty; give a CSV with the columns {', '.join(REQUIRED)}") from error
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise CsvError(f"{path}: not a CSV ({str(error).strip()})") from error
    except OSError as error:
        raise CsvError(f"{path}: cannot be read ({error.strerror or error})") from error


def _numbers(path: Path, table: Any, name: str) -> NDArray[np.float64]:
    import pandas as pd

    column = table[name]
    numbers: NDArray[np.float64] = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        seen = column.iloc[bad[0]]
        what = "is missing or NaN" if pd.isna(seen) else f"is {str(seen)[:30]!r}, not a finite number"
        raise CsvError(f"{path}: data row {bad[0] + 1}: {name} {what}; leave out points that were not measured")
    return numbers
