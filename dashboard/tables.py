"""Tables on the screen: numbers with few digits, units in the heading, the class's colour beside its name, CSV below."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st

from .colours import ink
from .metrics import CATALOGUE
from .text import for_markdown, shortened

CHIP = " "
"""Heading of the column that holds nothing but the class's colour."""


def show_table(frame: pd.DataFrame, name: str, *, chips: str | None = None, height: int | None = None) -> None:
    """Draw a table and a button that saves it as ``name``.csv.

    Columns that the metrics' catalogue knows get its label, unit and meaning. ``chips``: the column of kernel classes.
    Text is drawn as text: neither the table nor the CSV's cells are read as markup or as formulas.
    """
    config: dict[str, Any] = {}
    for column in frame.columns:
        known = CATALOGUE.get(str(column))
        label = str(column) if known is None else known.heading
        if pd.api.types.is_numeric_dtype(frame[column]) and not pd.api.types.is_bool_dtype(frame[column]):
            config[str(column)] = st.column_config.NumberColumn(
                label, help=known.meaning if known else None, format=_form(frame[column])
            )
        elif known is not None:
            config[str(column)] = st.column_config.TextColumn(label, help=known.meaning)
    shown: Any = frame
    if chips is not None:
        frame = frame.copy()
        frame.insert(0, CHIP, "■")
        colours = [ink(str(item)).colour for item in frame[chips]]
        shown = frame.style.apply(lambda column: [f"color: {colour}" for colour in colours], subset=[CHIP], axis=0)
        config[CHIP] = st.column_config.TextColumn(CHIP, width=20)
    st.dataframe(
        shown, hide_index=True, column_config=config, key=f"table-{name}", height=height or "content", placeholder=""
    )
    _save_button(frame.drop(columns=CHIP, errors="ignore"), name)


def show_text_table(frame: pd.DataFrame, name: str) -> None:
    """A short table that is read, not sorted: as text, which wraps on a phone and is drawn at once; with its CSV."""
    numbers = {str(column) for column in frame.columns if pd.api.types.is_numeric_dtype(frame[column])}

    def cell(column: str, value: Any) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return for_markdown(f"{value:.3g}" if column in numbers else str(value), 300)

    names = [str(column) for column in frame.columns]
    lines = [" | ".join(map(for_markdown, names)), " | ".join("--:" if name in numbers else "---" for name in names)]
    lines += [" | ".join(map(cell, names, row)) for row in frame.itertuples(index=False)]
    st.markdown("\n".join(f"| {line} |" for line in lines))
    _save_button(frame, name)


def _save_button(frame: pd.DataFrame, name: str) -> None:
    csv = frame.map(_csv_cell).to_csv(index=False)
    st.download_button(
        "CSV",
        csv,
        f"{name}.csv",
        "text/csv",
        key=f"csv-{name}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def _form(column: pd.Series) -> str:
    """Four significant digits for the column's largest value, two decimals where it also holds small ones."""
    values = pd.to_numeric(column, errors="coerce").abs().dropna()
    values = values[values > 0]
    if (values % 1 == 0).all():
        return "%d"
    digits = 3 - math.floor(math.log10(float(values.max())))
    if values.min() < 0.1:
        digits = max(digits, 2)
    return f"%.{min(max(digits, 0), 6)}f"


def _csv_cell(value: Any) -> Any:
    """A spreadsheet runs a cell that begins like a formula: such text gets an apostrophe in front."""
    if isinstance(value, str):
        text = shortened(value, 2000)
        return "'" + text if text[:1] in ("=", "+", "-", "@") else text
    return value
