"""One layer of a wall as it ran: every launch at its time, with the gaps and overlaps between them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.attribution import intervals
from benchmarks.attribution.record import LayerTimeline

from ..colours import ink, stacking_order
from ..text import for_hover
from .axes import style
from .chart import Chart


def launch_timeline(timeline: LayerTimeline) -> Chart:
    """A row an operation, in the order in which each is seen first; of several streams, a row for each of them."""
    table = launch_table(timeline)
    several = table["stream"].nunique() > 1
    rows = [
        for_hover(name, 48) + (f" · stream {stream}" if several else "")
        for name, stream in zip(table["operation"], table["stream"], strict=True)
    ]
    figure = Chart()
    for name in stacking_order(list(table["class"].unique())):
        inside = [place for place, kernel_class in enumerate(table["class"]) if kernel_class == name]
        part = table.iloc[inside]
        figure.add_bar(
            base=part["start (µs)"],
            x=part["duration (µs)"],
            y=[rows[place] for place in inside],
            orientation="h",
            name=for_hover(name),
            marker={"color": ink(name).colour},
            customdata=[
                f"<b>{for_hover(row.operation)}</b>, {for_hover(name)}<br>{for_hover(row.symbol, 90)}<br>"
                f"{row.duration:,.4g} µs from {row.start:,.4g} µs, stream {row.stream}, {row.gap:+,.3g} µs after the last"
                for row in part.set_axis(
                    ["operation", "name", "symbol", "stream", "start", "duration", "gap"], axis=1
                ).itertuples()
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_layout(barmode="overlay", bargap=0.2)
    order = list(dict.fromkeys(rows))
    figure = style(figure, 160 + 22 * len(order), "", x_title="µs since the layer's first launch")
    figure.update_yaxes(type="category", categoryarray=order[::-1])
    figure.update_xaxes(rangemode="tozero")
    return figure


def launch_table(timeline: LayerTimeline) -> pd.DataFrame:
    """One row a launch, in order of start. The gap before is below zero where a launch began before the last had ended."""
    start = np.array([item.start_ns for item in timeline.launches], dtype=np.int64)
    ns = np.array([item.ns for item in timeline.launches], dtype=np.int64)
    ended = np.maximum.accumulate(start + ns)
    gap = start - np.concatenate([start[:1], ended[:-1]])
    return pd.DataFrame(
        {
            "operation": [item.operation for item in timeline.launches],
            "class": [item.kernel_class for item in timeline.launches],
            "symbol": [item.symbol for item in timeline.launches],
            "stream": [item.stream for item in timeline.launches],
            "start (µs)": start / 1e3,
            "duration (µs)": ns / 1e3,
            "gap before (µs)": gap / 1e3,
        }
    )


def timeline_sentence(timeline: LayerTimeline) -> str:
    """How long the layer took, and how much of that a launch was running."""
    start = np.array([item.start_ns for item in timeline.launches], dtype=np.int64)
    end = start + np.array([item.ns for item in timeline.launches], dtype=np.int64)
    length = int(end.max() - start.min())
    running = intervals.total(intervals.union(start, end))
    text = (
        f"Layer {timeline.layer} as it ran in the traced wall: {len(start)} launches in {length / 1e3:,.4g} µs; nothing ran "
        f"in {(length - running) / 1e3:,.3g} µs of them ({100 * (length - running) / max(length, 1):.2g} %)."
    )
    return text + (f" {timeline.left_out} more launches at its end are not on record." if timeline.left_out else "")
