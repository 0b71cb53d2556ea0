"""What commits said that they would move against what was measured, over as many powers of ten as there are."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.attribution.predictions import HIT, HIT_FACTOR, MISS, Outcome

from ..colours import BETTER, WORSE
from ..text import for_hover
from .axes import style
from .chart import Chart

WRONG_SIGN = "wrong sign"
_LOOKS = {HIT: (BETTER, "circle"), MISS: (WORSE, "x"), WRONG_SIGN: (WORSE, "diamond")}


def said_and_measured(outcomes: Sequence[Outcome], unit: str) -> Chart:
    """Sizes of changes in ``unit``, both axes logarithmic, with the lines between which a change is a hit.

    Outcomes that were not measured, in another unit, or whose measured change is exactly 0 have no place here.
    """
    figure = Chart()
    known = [
        (item, item.measured.value)
        for item in outcomes
        if item.prediction.unit == unit and item.measured is not None and item.measured.value
    ]
    sizes = [abs(size) for item, value in known for size in (item.prediction.change, value)]
    if sizes:
        ends = [min(sizes) / HIT_FACTOR, max(sizes) * HIT_FACTOR]
        lines = (("as said", 1.0, "dot"), (f"{HIT_FACTOR:g} times off", HIT_FACTOR, "dash"), ("", 1 / HIT_FACTOR, "dash"))
        for name, factor, dash in lines:
            figure.add_scatter(
                x=ends,
                y=[end * factor for end in ends],
                mode="lines",
                name=name,
                line={"dash": dash, "color": "#808080", "width": 1},
                hoverinfo="skip",
                showlegend=bool(name),
            )
    for verdict, (colour, symbol) in _LOOKS.items():
        points = [(item, value) for item, value in known if _verdict(item, value) == verdict]
        if points:
            figure.add_scatter(
                x=[abs(item.prediction.change) for item, _ in points],
                y=[abs(value) for _, value in points],
                mode="markers",
                name=verdict,
                marker={"size": 12, "color": colour, "symbol": symbol},
                customdata=[
                    f"{for_hover(item.prediction.commit[:8])} {for_hover(item.prediction.subject)} @{item.prediction.nt}<br>"
                    f"said {item.prediction.change:+.4g}, measured {value:+.4g} {for_hover(unit)}"
                    for item, value in points
                ],
                hovertemplate="%{customdata}<extra></extra>",
            )
    style(figure, 340, f"size of the measured change ({unit})", x_title=f"size of the change that was said ({unit})")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure


def _verdict(item: Outcome, value: float) -> str:
    return WRONG_SIGN if value * item.prediction.change < 0 else item.verdict
