"""The stacked decomposition over commits, in any of its four units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..colours import ink, stacking_order
from ..metrics import metric
from ..text import for_hover
from .axes import commit_axis, commit_hover, style
from .chart import Chart
from .decimate import representatives

MOST_BARS = 240
TALL = 4.0
"""Times the median wall: a first commit twenty times as slow would leave nothing of the others to see."""


def part_values(parts: pd.DataFrame, view: str) -> pd.Series:
    """The parts' values in the view's unit. ``parts`` has ns, macs, busy_ns, traced_ns; NaN where the unit means nothing."""
    ns = parts["ns"].astype(float)
    if view == "class_ms":
        return ns / 1e6
    if view == "share_of_busy":
        return 100.0 * ns / parts["busy_ns"].astype(float)
    if view == "share_of_wall":
        return 100.0 * ns / parts["traced_ns"].astype(float)
    macs = pd.to_numeric(parts["macs"], errors="coerce").astype(float)
    return (ns / 1e3 / (macs / 1e9)).where(macs > 0)


def stacked(parts: pd.DataFrame, view: str, height: int = 480) -> tuple[Chart, str]:
    """``parts``: rows of one machine, engine and nt with columns order, short, time, subject, part, ns, launches, macs,
    busy_ns, traced_ns, wall_ns. Returns the figure and a sentence about what is not drawn ("" where all is)."""
    shown = metric(view)
    commits = parts.drop_duplicates("order").sort_values("order").reset_index(drop=True)
    # Numbers only from here on: pandas copies each text column with each selection, and there are many of both.
    numbers = ["order", "part", "ns", "launches", "macs", "busy_ns", "traced_ns"]
    parts = parts[numbers].assign(value=part_values(parts, view))
    chosen = representatives(commits["traced_ns"].to_numpy(dtype=float), MOST_BARS)
    drawn = commits.iloc[chosen].reset_index(drop=True)
    place = {order: index for index, order in enumerate(drawn["order"])}
    parts = parts[parts["order"].isin(place)].assign(x=lambda frame: frame["order"].map(place))
    figure = Chart()
    stack = view != "cost"
    heads = [commit_hover(row.short, row.time, row.subject) for row in drawn[["short", "time", "subject"]].itertuples()]
    by_part: dict[str, list[Any]] = {}
    for row in parts[parts["value"].notna()].sort_values("x").itertuples():
        by_part.setdefault(str(row.part), []).append(row)
    for name in stacking_order(list(by_part)):
        rows = by_part[name]
        x, y = [row.x for row in rows], [row.value for row in rows]
        if not any(y):
            continue
        colour = ink(name)
        hover = [_detail(heads[row.x], name, row) for row in rows]
        if stack:
            figure.add_bar(
                x=x,
                y=y,
                name=for_hover(name),
                customdata=hover,
                hovertemplate="%{customdata}<extra></extra>",
                marker={"color": colour.colour, "pattern": hatch_pattern(colour.hatch)},
            )
        else:
            figure.add_scatter(
                x=x,
                y=y,
                name=for_hover(name),
                customdata=hover,
                hovertemplate="%{customdata}<extra></extra>",
                mode="lines+markers",
                line={"color": colour.colour, "width": 2},
                marker={"size": 5},
            )
    if view == "class_ms":
        figure.add_scatter(
            x=list(range(len(drawn))),
            y=drawn["wall_ns"].astype(float) / 1e6,
            name="wall, untraced",
            mode="markers",
            marker={"symbol": "line-ew-open", "size": 11, "line": {"width": 2, "color": "#808080"}, "color": "#808080"},
            customdata=heads,
            hovertemplate="%{customdata}<br>untraced wall %{y:.4g} ms<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.12 if len(drawn) <= 80 else 0.0)
    style(figure, height, shown.axis)
    if not stack:
        figure.update_yaxes(type="log")
    commit_axis(figure, drawn)
    notes = []
    if len(drawn) < len(commits):
        notes.append(f"{len(drawn)} of {len(commits)} commits drawn: of each stretch the one with the middle wall.")
    if view == "class_ms" and _cut_tall_bars(figure, drawn["traced_ns"].to_numpy(dtype=float) / 1e6):
        notes.append("Bars that would dwarf the others are cut; their height stands on them. Double-click shows all.")
    return figure, " ".join(notes)


def _cut_tall_bars(figure: Chart, walls: NDArray[np.float64]) -> bool:
    """Let the axis end above the walls that are not out of all proportion, and write on the others how high they are."""
    most = TALL * float(np.median(walls))
    tall = np.flatnonzero(walls > most)
    if not 0 < tall.size <= len(walls) // 2:
        return False
    top = 1.3 * float(walls[walls <= most].max())
    figure.update_yaxes(range=[0, top])
    for place in tall[:MOST_BARS]:
        figure.add_annotation(
            x=int(place),
            y=top,
            yanchor="top",
            text=f"▲ {walls[place]:,.3g}",
            font={"size": 12, "color": "#FFFFFF"},
            bgcolor="#444444",
        )
    return True


def _detail(head: str, name: str, row: Any) -> str:
    ms, wall = row.ns / 1e6, 100.0 * row.ns / row.traced_ns
    launches, macs = row.launches, row.macs
    text = f"{head}<br><b>{for_hover(name)}</b>: {ms:,.4g} ms, {wall:.3g} % of wall"
    if launches is not None and not np.isnan(launches):
        text += f", {int(launches)} launches"
    if macs is not None and not np.isnan(macs) and macs > 0:
        text += f", {row.ns / 1e3 / (macs / 1e9):.4g} µs/GMAC"
    return text


def hatch_pattern(hatch: str) -> dict[str, str]:
    return {"shape": hatch} if hatch else {}
