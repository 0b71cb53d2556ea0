"""Tables on the screen: numbers with few digits, units in the heading, the class's colour beside its name, CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from .charts import component
from .colours import ink
from .metrics import CATALOGUE
from .text import shortened

MOST_LETTERS = 2000


def show_table(
    frame: pd.DataFrame,
    name: str,
    *,
    key: str | None = None,
    chips: str | None = None,
    height: int | None = None,
    wrap: bool = False,
) -> None:
    """Draw a table that saves itself as ``name``.csv.

    Columns that the metrics' catalogue knows get its label, unit and meaning. ``chips``: the column of kernel classes, shown
    first. ``key``: where the name changes with what is shown, what stays, so that the page only fills the table anew.
    ``height``: most pixels before it scrolls. ``wrap``: long texts are read whole, and each number has digits of
    its own.
    """
    if chips is not None:
        frame = frame[[chips, *(column for column in frame.columns if column != chips)]]
    columns, values = [], []
    for column in map(str, frame.columns):
        known = CATALOGUE.get(column)
        number = pd.api.types.is_numeric_dtype(frame[column]) and not pd.api.types.is_bool_dtype(frame[column])
        cells = [_value(value) for value in frame[column].to_list()]
        label, meaning = (known.heading, known.meaning) if known else (column, "")
        digits = _digits(cells) if number and not wrap else None
        columns.append({"name": column, "label": label, "help": meaning, "number": number, "digits": digits})
        values.append(cells)
    data: dict[str, Any] = {
        "file": name,
        "alt": f"Table {key or name}",
        "columns": columns,
        "rows": list(zip(*values, strict=True)),
        "height": height,
        "wrap": wrap,
    }
    if chips is not None:
        inks = [ink(str(item)) for item in frame[chips]]
        data["chips"] = [(one.colour, one.hatch) for one in inks]
    component.show("table", f"table-{key or name}", data)


def _digits(values: Sequence[Any]) -> int:
    """Decimals for four significant digits of the column's largest value, two where it also holds small ones."""
    sizes = [abs(value) for value in values if value]
    if all(value == int(value) for value in sizes):
        return 0
    digits = 3 - math.floor(math.log10(max(sizes)))
    if min(sizes) < 0.1:
        digits = max(digits, 2)
    return min(max(digits, 0), 6)


def _value(value: Any) -> str | float | int | None:
    """As JSON can hold it; what is not there is null."""
    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, int | float) else shortened(str(value), MOST_LETTERS)
