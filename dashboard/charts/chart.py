"""A chart as plain data, which plot.js draws: a small part of Plotly's form, held whole by tests/dashboard/form.py."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import pandas as pd

Values = dict[str, Any]
_INT32 = np.iinfo(np.int32)


class Chart:
    """``data``: the traces, each a set of marks of one look. ``layout``: everything else."""

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
        self.layout.setdefault("shapes", []).append({"line": line} | place)

    def update_layout(self, **values: Any) -> None:
        self.layout |= values

    def update_xaxes(self, **values: Any) -> None:
        self.layout.setdefault("xaxis", {}).update(values)

    def update_yaxes(self, **values: Any) -> None:
        self.layout.setdefault("yaxis", {}).update(values)

    def to_dict(self) -> Values:
        """Traces and layout as JSON can hold them: long columns of numbers packed, what is no number as null."""
        return {"traces": [_plain(trace) for trace in self.data], "layout": _plain(self.layout)}


def drawn(chart: Chart, name: str, alt: str, image: str = "png") -> Values:
    """What plot.js is given. ``name`` is the name of saved files, ``alt`` what the chart shows for who cannot see it."""
    return chart.to_dict() | {"file": name, "alt": alt, "image": image}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, pd.Series):
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iu":  # nanoseconds and bytes are beyond 32 bits, and the page has no whole numbers of 64
            small = value.size == 0 or (value.min() >= _INT32.min and value.max() <= _INT32.max)
            value = value.astype("<i4" if small else "<f8")
        elif value.dtype.kind == "f":
            value = value.astype("<f4" if value.dtype.itemsize == 4 else "<f8")
        if value.dtype.kind in "if" and value.ndim == 1:
            return {"dtype": value.dtype.str[1:], "bdata": base64.b64encode(value.tobytes()).decode("ascii")}
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
