"""Rows of walls as the charts want them."""

from __future__ import annotations

import pandas as pd


def newest_walls(walls: pd.DataFrame, engine: str) -> pd.DataFrame:
    """Of each commit the best wall of its last window, in order of commits."""
    rows = walls[(walls["engine"] == engine) & walls["best"]]
    return rows.sort_values(["order", "started", "line"]).drop_duplicates("commit", keep="last")


def rates(walls: pd.DataFrame) -> pd.DataFrame:
    """Prompt tokens a second with the interval, one line an engine."""
    return walls.assign(
        line=walls["engine"],
        value=walls["nt"] / (walls["wall_ns"] / 1e9),
        low=walls["nt"] / (walls["high_ns"] / 1e9),
        high=walls["nt"] / (walls["low_ns"] / 1e9),
    )


def ratios(walls: pd.DataFrame) -> pd.DataFrame:
    """Time ratio to the peer with the interval, where there is one, one line an engine."""
    rows = walls[walls["ratio"].notna()]
    return rows.assign(line=rows["engine"], value=rows["ratio"], low=rows["ratio_low"], high=rows["ratio_high"])
