"""A quantity over commits: median, interval, change points, the commit's subject on hover."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..colours import engine_colour
from ..text import for_hover
from .axes import MOST_POINTS, commit_axis, commit_hover, style
from .chart import Chart
from .decimate import extremes, representatives


def over_commits(
    rows: pd.DataFrame,
    y_title: str,
    colours: dict[str, str],
    *,
    height: int = 300,
    reference: float | None = None,
    change_points: pd.DataFrame | None = None,
    form: str = ",.4g",
) -> Chart:
    """``rows``: columns order, short, time, subject, line, value, low, high (interval; NaN where there is none).

    ``reference`` draws a horizontal line. ``change_points``: columns order, text. Values are drawn in the order of commits.
    """
    rows = rows[["order", "short", "time", "subject", "line", "value", "low", "high"]]
    # Ten thousand commits have as many rows: their texts are only looked at where something is written.
    orders = np.unique(rows["order"].to_numpy())
    figure = Chart()
    # Several lines share the bound, so that a chart of many never draws more than its width.
    most = max(64, MOST_POINTS // max(1, rows["line"].nunique()))
    for name, line in rows.sort_values("order").groupby("line", sort=False):
        colour = colours.get(str(name)) or engine_colour(str(name))
        if len(line) > most:
            # The lightly drawn envelope keeps every spike; the line over it is the middle of each stretch.
            values = line["value"].to_numpy(dtype=float)
            envelope = line.iloc[extremes(values, most // 2)]
            figure.add_scatter(
                x=np.searchsorted(orders, envelope["order"]),
                y=envelope["value"],
                mode="lines",
                line={"color": _transparent(colour), "width": 1},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=for_hover(str(name)),
            )
            line = line.iloc[representatives(values, most // 2)]
        x = np.searchsorted(orders, line["order"])
        band = (line["low"].notna() & line["high"].notna()).to_numpy()
        if band.any():
            bx = x[band]
            figure.add_scatter(
                x=np.concatenate([bx, bx[::-1]]),
                y=np.concatenate([line.loc[band, "high"], line.loc[band, "low"].to_numpy()[::-1]]),
                fill="toself",
                fillcolor=_transparent(colour),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                legendgroup=for_hover(str(name)),
                mode="lines",
            )
        hover = [
            f"{commit_hover(row.short, row.time, row.subject)}<br>{for_hover(str(name))}: <b>{format(row.value, form)}</b>"
            + (f" [{format(row.low, form)}, {format(row.high, form)}]" if pd.notna(row.low) else "")
            for row in line.itertuples()
        ]
        figure.add_scatter(
            x=x,
            y=line["value"],
            name=for_hover(str(name)),
            legendgroup=for_hover(str(name)),
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
            mode="lines+markers" if len(line) <= 120 else "lines",
            line={"color": colour, "width": 2},
            marker={"size": 6},
        )
    if reference is not None:
        figure.add_line(y=reference, line={"dash": "dot", "width": 1, "color": "#808080"})
    if change_points is not None:
        for point in change_points[change_points["order"].isin(orders)].itertuples():
            at = int(np.searchsorted(orders, point.order)) - 0.5
            figure.add_line(x=at, line={"dash": "dash", "width": 1.5, "color": "#AA3377"})
            figure.add_annotation(
                x=at,
                yref="paper",
                y=1,
                text="◆",
                font={"color": "#AA3377", "size": 13},
                hovertext=for_hover(str(point.text)),
                yanchor="middle",
            )
    style(figure, height, y_title, legend=rows["line"].nunique() > 1)
    commit_axis(figure, rows.drop_duplicates("order").sort_values("order"))
    return figure


def _transparent(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"
