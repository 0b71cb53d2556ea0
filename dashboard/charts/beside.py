"""Two walls next to each other: what each class costs on either side, whatever machine or engine it is."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.attribution.beside import ClassRow

from ..colours import SIDES
from ..metrics import metric
from ..portrait import with_range
from ..text import for_hover
from .axes import style, whiskers
from .chart import Chart

SYMBOLS = ("circle", "diamond")


def cost_dots(rows: Sequence[ClassRow], labels: tuple[str, str]) -> Chart | None:
    """One line a class whose cost is known on a side, a mark a side; a logarithmic axis. None where there is none."""
    known = [row for row in rows if (row.a and row.a.cost) or (row.b and row.b.cost)]
    if not known:
        return None
    figure = Chart()
    for row in known:
        ends = [side.cost.value for side in (row.a, row.b) if side and side.cost]
        if len(ends) == 2:
            figure.add_scatter(
                x=ends,
                y=[for_hover(row.name)] * 2,
                mode="lines",
                line={"color": "#808080", "width": 1},
                hoverinfo="skip",
                showlegend=False,
            )
    for place, label in enumerate(labels):
        sides = [(row.name, (row.a, row.b)[place]) for row in known]
        points = [(name, side.cost) for name, side in sides if side and side.cost]
        figure.add_scatter(
            x=[cost.value for _, cost in points],
            y=[for_hover(name) for name, _ in points],
            mode="markers",
            name=for_hover(label),
            marker={"size": 11, "color": SIDES[place], "symbol": SYMBOLS[place], "line": {"width": 1, "color": "#808080"}},
            error_x=whiskers([cost for _, cost in points]),
            customdata=[with_range(cost) for _, cost in points],
            hovertemplate=f"<b>%{{y}}</b>, {for_hover(label)}<br>%{{customdata}} µs/GMAC<extra></extra>",
        )
    figure = style(figure, 170 + 28 * len(known), "", x_title=metric("cost").axis)
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="category", categoryarray=[for_hover(row.name) for row in known[::-1]])
    return figure
