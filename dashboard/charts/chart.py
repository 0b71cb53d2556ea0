"""A chart as plain data in Plotly's form. ``plotly.graph_objects`` checks each property as it is set, which took more of a
click than all else on the server; the tests let it check every chart that a screen draws instead.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from plotly.basedatatypes import BaseFigure

Values = dict[str, Any]


class Chart:
    """``data``: the traces. ``layout``: everything else. Both are what plotly.js reads."""

    def __init__(self) -> None:
        self.data: list[Values] = []
        self.layout: Values = {}

    def add_bar(self, **trace: Any) -> None:
        self.data.append({"type": "bar"} | trace)

    def add_scatter(self, **trace: Any) -> None:
        self.data.append({"type": "scatter"} | trace)

    def add_annotation(self, **annotation: Any) -> None:
        self.layout.setdefault("annotations", []).append(annotation)

    def add_line(self, *, x: float | None = None, y: float | None = None, line: Values) -> None:
        """A line across the whole plot, at an x or at a y."""
        place = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
        if x is None:
            place = {"x0": 0, "x1": 1, "xref": "paper", "y0": y, "y1": y}
        self.layout.setdefault("shapes", []).append({"type": "line", "line": line} | place)

    def update_layout(self, **values: Any) -> None:
        self.layout |= values

    def update_xaxes(self, **values: Any) -> None:
        self.layout.setdefault("xaxis", {}).update(values)

    def update_yaxes(self, **values: Any) -> None:
        self.layout.setdefault("yaxis", {}).update(values)

    def to_dict(self) -> Values:
        """Numbers packed as plotly.js takes them; with the look that Streamlit lays under every chart."""
        return {"data": [_plain(trace) for trace in self.data], "layout": {"template": _template()} | _plain(self.layout)}

    def for_plotly(self) -> BaseFigure:
        """As an object that Plotly's and Streamlit's Python take for a figure."""
        return _Ready(self.to_dict())


class _Ready(BaseFigure):  # type: ignore[misc]
    """A figure whose dictionary is already made."""

    def __init__(self, made: Values) -> None:
        object.__setattr__(self, "_made", made)

    def to_dict(self) -> Values:
        made: Values = object.__getattribute__(self, "_made")
        return made


@cache
def _template() -> Values:
    """The template in force: Streamlit's within Streamlit, Plotly's own outside of it."""
    import plotly.io

    found: Values = plotly.io.templates[plotly.io.templates.default].to_plotly_json()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, pd.Series):
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iu":
            value = value.astype(np.int32)
        if value.dtype.kind in "if" and value.ndim == 1:
            return {"dtype": value.dtype.str[1:], "bdata": base64.b64encode(value.tobytes()).decode("ascii")}
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
