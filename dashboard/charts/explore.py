"""Many series at once: a heatmap of commits by series, and small multiples."""

from __future__ import annotations

import os.path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..text import for_hover
from .axes import GRID, commit_axis
from .decimate import extremes, representatives

MOST_COLUMNS = 600
POINTS_A_PANEL = 160
# Purple to orange through grey: told apart by colour-blind eyes, and neither end reads as good or bad.
_SCALE = [(0.0, "#5E3C99"), (0.25, "#B2ABD2"), (0.5, "#9A9A9A"), (0.75, "#FDB863"), (1.0, "#E66101")]


def short_names(names: list[str]) -> list[str]:
    """Names without the start that all share (cut at a dot, a colon or a bracket), short enough for an axis."""
    common = os.path.commonprefix(names) if len(names) > 1 else ""  # noqa: RUF071 (a character is what is meant)
    cut = max(common.rfind(mark) for mark in ".:(") + 1
    return [for_hover(name[cut:].strip(), 34) for name in names]


def heatmap(cells: pd.DataFrame, names: dict[int, str], commits: pd.DataFrame, bins: int) -> go.Figure:
    """``cells``: series, bin, middle (see query.heat). Colour: a bin's median against its series' own, in percent."""
    count = len(commits)
    order = list(names)
    grid = np.full((len(order), bins), np.nan)
    row_of = {series: row for row, series in enumerate(order)}
    rows = cells["series"].map(row_of).to_numpy(dtype=int)
    grid[rows, cells["bin"].to_numpy(dtype=int)] = cells["middle"].to_numpy(dtype=float)
    seen = np.isfinite(grid).any(axis=1)
    middle = np.full(len(order), np.nan)
    middle[seen] = np.nanmedian(grid[seen], axis=1)
    change = 100.0 * (grid / middle[:, None] - 1.0)
    finite = np.abs(change[np.isfinite(change)])
    limit = float(np.percentile(finite, 98)) if finite.size else 1.0
    starts = np.minimum((np.arange(bins) * count) // bins, count - 1)
    figure = go.Figure()
    figure.add_heatmap(
        z=np.round(change, 2),
        x=list(range(bins)),
        y=list(short_names([names[series] for series in order])),
        zmid=0.0,
        zmin=-max(limit, 0.5),
        zmax=max(limit, 0.5),
        colorscale=_SCALE,
        colorbar={"orientation": "h", "thickness": 10, "len": 0.7, "y": 1.0, "yanchor": "bottom", "ticksuffix": " %"},
        hovertemplate="%{y}<br>commit %{customdata}<br>%{z:+.3g} % of the series' median<extra></extra>",
        customdata=np.tile(commits["short"].to_numpy(dtype=str)[starts], (len(order), 1)),
    )
    figure.update_layout(
        height=130 + 18 * len(order),
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    commit_axis(figure, list(commits["short"].to_numpy()[starts]), list(commits["time"].to_numpy()[starts]))
    figure.update_yaxes(autorange="reversed", type="category", automargin=True, tickfont={"size": 10})
    return figure


def small_multiples(rows: pd.DataFrame, names: dict[int, str], columns: int) -> go.Figure:
    """One panel a series, each with its own scale. ``rows``: series, order, value, in order.

    The grid is laid out here: plotly's make_subplots takes longer than all else that a click needs.
    """
    by_series = {int(series): part for series, part in rows.groupby("series")}
    order = [series for series in names if series in by_series]
    lines = max(1, -(-len(order) // columns))
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "height": 30 + 130 * lines, "margin": {"l": 36, "r": 8, "t": 24, "b": 8}}
    layout |= {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "showlegend": False}
    titles = short_names([names[series] for series in order])
    for place, (series, title) in enumerate(zip(order, titles, strict=True)):
        part = by_series[series]
        number = "" if place == 0 else str(place + 1)
        left, top = place % columns / columns, 1.0 - place // columns / lines
        layout[f"xaxis{number}"] = {
            "domain": [left, left + 0.88 / columns], "anchor": f"y{number}", "showticklabels": False, "gridcolor": GRID,
        }  # fmt: skip
        layout[f"yaxis{number}"] = {
            "domain": [top - 0.74 / lines, top], "anchor": f"x{number}", "nticks": 3, "gridcolor": GRID,
        }  # fmt: skip
        layout["annotations"].append(
            {"text": title, "x": left, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
            | {"showarrow": False, "font": {"size": 11}}
        )
        axes = {"type": "scatter", "mode": "lines", "xaxis": f"x{number}", "yaxis": f"y{number}"}
        values = part["value"].to_numpy(dtype=float)
        for rows_drawn, colour, width, hover in (
            (extremes(values, POINTS_A_PANEL), "rgba(68,119,170,0.35)", 1.0, "skip"),
            (representatives(values, POINTS_A_PANEL), "#4477AA", 1.6, "y"),
        ):
            drawn = part.iloc[rows_drawn]
            traces.append(
                axes
                | {"x": drawn["order"], "y": drawn["value"], "line": {"width": width, "color": colour}, "hoverinfo": hover}
            )
    return go.Figure({"data": traces, "layout": layout})
