"""The form of a chart, as plot.js reads it: a property that it does not know would silently draw nothing."""

from __future__ import annotations

import base64
import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from dashboard.charts.chart import Chart

NUMBER, TEXT, FLAG = (int, float), (str,), (bool,)
COLUMN = "column"
"""Numbers or texts, one a mark; packed where they are many."""
LINE = {"color": TEXT, "width": NUMBER, "dash": ("solid", "dot", "dash", "dashdot")}
AXIS = {
    "type": ("category", "log"),
    "range": COLUMN,
    "autorange": ("reversed",),
    "rangemode": ("tozero",),
    "tickvals": COLUMN,
    "ticktext": COLUMN,
    "categoryarray": COLUMN,
    "title": {"text": TEXT},
    "showticklabels": FLAG,
    "showgrid": FLAG,
}
NOTE = {
    "text": TEXT,
    "hovertext": TEXT,
    "x": NUMBER,
    "y": NUMBER,
    "xref": ("paper",),
    "yref": ("paper",),
    "xanchor": ("left", "center", "right"),
    "yanchor": ("top", "middle", "bottom"),
    "font": {"size": NUMBER, "color": TEXT},
    "bgcolor": TEXT,
}
LAYOUT = {
    "height": NUMBER,
    "showlegend": FLAG,
    "barmode": ("stack", "overlay"),
    "bargap": NUMBER,
    "xaxis": AXIS,
    "yaxis": AXIS,
    "annotations": [NOTE],
    "shapes": [{"line": LINE, "xref": ("paper",), "yref": ("paper",)} | dict.fromkeys(("x0", "x1", "y0", "y1"), NUMBER)],
}
TRACE = {
    "type": ("bar", "scatter"),
    "x": COLUMN,
    "y": COLUMN,
    "name": TEXT,
    "customdata": COLUMN,
    "hovertemplate": TEXT,
    "hoverinfo": ("skip",),
    "showlegend": FLAG,
    "legendgroup": TEXT,
    "error_x": {"array": COLUMN, "arrayminus": COLUMN, "color": TEXT, "thickness": NUMBER},
}
BAR = TRACE | {
    "base": COLUMN,
    "orientation": ("h", "v"),
    "width": NUMBER,
    "marker": {"color": (str, list), "pattern": {"shape": ("/", "\\", "-", "x", ".")}},
}
SCATTER = TRACE | {
    "mode": ("lines", "markers", "lines+markers"),
    "line": LINE,
    "fill": ("toself",),
    "fillcolor": TEXT,
    "marker": {
        "color": TEXT,
        "size": NUMBER,
        "symbol": ("circle", "diamond", "x", "line-ew-open"),
        "line": {"width": NUMBER, "color": TEXT},
    },
}


def check(spec: dict[str, Any]) -> None:
    """Raise AssertionError naming the first property that plot.js would not understand."""
    _check(spec["layout"], LAYOUT, "layout")
    for place, trace in enumerate(spec["traces"]):
        _check(trace, BAR if trace["type"] == "bar" else SCATTER, f"traces[{place}]")
        marks = len(unpacked(trace["x"]))
        for name in ("y", "base", "customdata"):
            assert name not in trace or len(unpacked(trace[name])) == marks, f"traces[{place}].{name}: not one a mark"
        for side in trace.get("error_x", {}).keys() & {"array", "arrayminus"}:
            assert len(unpacked(trace["error_x"][side])) == marks, f"traces[{place}].error_x.{side}: not one a mark"
        drawn_as_line = trace["type"] == "scatter" and "lines" in trace.get("mode", "lines") and "fill" not in trace
        assert not drawn_as_line or "color" in trace["line"], f"traces[{place}]: a line without a colour"


def _check(value: Any, form: Any, where: str) -> None:
    if isinstance(form, dict):
        assert isinstance(value, dict), f"{where}: not an object"
        for key, inner in value.items():
            assert key in form, f"{where}.{key}: nothing reads it"
            _check(inner, form[key], f"{where}.{key}")
    elif isinstance(form, list):
        for place, inner in enumerate(value):
            _check(inner, form[0], f"{where}[{place}]")
    elif form == COLUMN:
        assert isinstance(value, list) or set(value) == {"dtype", "bdata"}, f"{where}: not a column"
    elif isinstance(form[0], str):
        assert value in form, f"{where}: {value!r} is none of {form}"
    else:
        assert isinstance(value, form), f"{where}: {value!r}"
        assert not isinstance(value, float) or math.isfinite(value), f"{where}: {value!r}"


def unpacked(value: Any) -> Any:
    if isinstance(value, dict) and "bdata" in value:
        return np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"]).tolist()
    return value


class Figure(SimpleNamespace):
    """A chart's properties by dots; one that is not set is None."""

    def __getattr__(self, name: str) -> Any:
        return None


def checked(chart: Chart) -> Figure:
    """A chart as the page gets it, held against the form."""
    spec = json.loads(json.dumps(chart.to_dict(), allow_nan=False))
    check(spec)
    return Figure(
        traces=[_dotted(trace) for trace in spec["traces"]], layout=_dotted({"xaxis": {}, "yaxis": {}} | spec["layout"])
    )


def _dotted(value: Any) -> Any:
    value = unpacked(value)
    if isinstance(value, dict):
        return Figure(**{key: _dotted(inner) for key, inner in value.items()})
    return [_dotted(inner) for inner in value] if isinstance(value, list) else value
