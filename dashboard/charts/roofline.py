"""The roofline: what each class reaches against what its intensity allows on this device, as measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.attribution.record import Ceiling, ClassTime
from benchmarks.attribution.recover import per_second

from ..colours import ink
from ..metrics import metric
from ..text import for_hover
from .axes import style
from .chart import Chart

_DASHES = ("solid", "dash", "dot", "dashdot")


def roofline(classes: Sequence[ClassTime], ceilings: Sequence[Ceiling]) -> Chart | None:
    """Points for classes whose work and bytes are known; None where there is none. Rates count 2 operations a MAC."""
    known = [item for item in classes if item.macs and item.bytes and item.ns]
    points = [(item, 2.0 * (item.macs or 0) / (item.bytes or 1), 2.0 * (item.macs or 0) / item.ns / 1e3) for item in known]
    if not points:
        return None
    figure = Chart()
    bandwidth = max((per_second(item) for item in ceilings if item.name == "copy"), default=None)
    rates = [item for item in ceilings if item.name != "copy"]
    knees = [per_second(item) / bandwidth for item in rates] if bandwidth else []
    lowest = min(*knees, *(x for _, x, _ in points), math.inf) / 6
    highest = max(x for _, x, _ in points) * 4
    for place, item in enumerate(rates):
        peak = per_second(item) / 1e12
        knee = peak * 1e12 / bandwidth if bandwidth else lowest
        x = np.geomspace(lowest, max(highest, knee * 2), 60)
        y = np.minimum(peak, x * bandwidth / 1e12) if bandwidth else np.full_like(x, peak)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=for_hover(f"{item.name} {item.value:g} {item.unit}"),
            line={"color": "#808080", "width": 1.5, "dash": _DASHES[place % len(_DASHES)]},
            hovertemplate="%{x:.3g} FLOP/byte allows %{y:.3g} TFLOP/s<extra></extra>",
        )
    for kernel, intensity, rate in points:
        figure.add_scatter(
            x=[intensity],
            y=[rate],
            mode="markers",
            name=for_hover(kernel.name),
            marker={"color": ink(kernel.name).colour, "size": 14, "line": {"width": 1, "color": "#808080"}},
            hovertemplate=f"<b>{for_hover(kernel.name)}</b><br>{kernel.ns / 1e6:,.4g} ms, {rate:,.4g} TFLOP/s "
            f"at {intensity:,.4g} FLOP/byte<extra></extra>",
        )
    style(figure, 420, metric("tflops").axis, x_title=metric("intensity").axis)
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure
