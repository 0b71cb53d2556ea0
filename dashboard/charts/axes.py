"""What every chart shares: the commit axis, hovers, the look, and the bound on drawn points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from benchmarks.attribution.spread import Figure

from ..text import for_hover
from .chart import Chart

MOST_POINTS = 1000
"""Points along an axis: no screen that this page is for has more pixels to give one chart."""


def commit_hover(short: str, time: str, subject: str) -> str:
    return f"<b>{for_hover(short)}</b> {for_hover(time[:10])}<br>{for_hover(subject, 90)}"


def style(figure: Chart, height: int, y_title: str, *, legend: bool = True, x_title: str = "") -> Chart:
    """One look for all: no title inside the plot, the legend below it so that a phone's width is the plot's.

    ``height``: pixels with one row of legend; each further row adds its own.
    """
    figure.update_layout(height=height, showlegend=legend)
    figure.update_xaxes(title={"text": x_title})
    # The unit stands above the axis, left-aligned: a turned title eats a phone's width.
    if y_title:
        place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
        figure.add_annotation(text=y_title, font={"size": 12}, **place)
    return figure


def whiskers(figures: Sequence[Figure]) -> dict[str, Any]:
    """Error bars of figures with their intervals; none where there is no interval."""
    low = [max(0.0, item.value - item.interval.low) if item.interval else 0.0 for item in figures]
    high = [max(0.0, item.interval.high - item.value) if item.interval else 0.0 for item in figures]
    return {"thickness": 1.2, "color": "#808080", "arrayminus": low, "array": high}


def commit_axis(figure: Chart, commits: pd.DataFrame) -> None:
    """Place commits by their order (not their date: work comes in bursts) and write a date under a few of them.

    ``commits``: columns short and time, in order.
    """
    count = len(commits)
    places = list(range(0, count, max(1, -(-count // 4))))
    named = commits.iloc[places]
    figure.update_xaxes(
        tickvals=places,
        ticktext=[f"{row.time[:10]}<br>{for_hover(row.short)}" for row in named.itertuples()],
        range=[-0.6, count - 0.4],
    )
