"""A chart's plain data, as JSON can hold it, and the form that it is held against."""

import json

import numpy as np
import pandas as pd
import pytest

from dashboard.charts.chart import Chart
from tests.dashboard.form import checked, unpacked


def test_numbers_of_any_kind_arrive_as_they_are():
    chart = Chart()
    chart.add_scatter(x=np.arange(3), y=pd.Series([1.5, float("nan"), 3.0]), customdata=["a", float("nan"), "c"])
    chart.add_bar(x=[np.float64(1), 2], y=np.array(["p", "q"]), base=np.array([0.5, 1.0], dtype=np.float32))
    sent = json.loads(json.dumps(chart.to_dict(), allow_nan=False))["traces"]
    assert unpacked(sent[0]["x"]) == [0, 1, 2]
    y = unpacked(sent[0]["y"])
    assert (y[0], np.isnan(y[1]), y[2]) == (1.5, True, 3.0)
    assert sent[0]["customdata"] == ["a", None, "c"]
    assert sent[1]["x"] == [1.0, 2]
    assert sent[1]["y"] == ["p", "q"]
    assert unpacked(sent[1]["base"]) == [0.5, 1.0]


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 2**31 - 1, -(2**31)]),
        np.array([0, 2**31, 3_000_000_000]),  # nanoseconds, bytes
        np.array([2**32, 5], np.uint64),
        np.array([1.5, 2.5], np.float16),
        np.array([1.5, 2.5], ">f8"),
        np.array([], np.int64),
    ],
)
def test_packed_numbers_of_any_width_arrive_as_they_are(values):
    chart = Chart()
    chart.add_scatter(x=values, y=values)
    sent = json.loads(json.dumps(chart.to_dict(), allow_nan=False))["traces"][0]["x"]
    assert sent["dtype"] in ("i4", "f4", "f8")  # those that scales.js reads
    assert unpacked(sent) == values.tolist()


def test_updates_add_up_and_lines_cross_the_plot():
    chart = Chart()
    chart.update_xaxes(type="log")
    chart.update_xaxes(title={"text": "x"})
    chart.update_layout(height=300)
    chart.add_line(y=1.0, line={"dash": "dot"})
    chart.add_line(x=2.5, line={"dash": "dash"})
    chart.add_annotation(text="one")
    chart.add_annotation(text="two")
    figure = checked(chart)
    assert (figure.layout.xaxis.type, figure.layout.xaxis.title.text, figure.layout.height) == ("log", "x", 300)
    across, down = figure.layout.shapes
    assert (across.y0, across.y1, across.xref) == (1.0, 1.0, "paper")
    assert (down.x0, down.x1, down.yref) == (2.5, 2.5, "paper")
    assert [note.text for note in figure.layout.annotations] == ["one", "two"]


@pytest.mark.parametrize(
    ("trace", "says"),
    [
        ({"x": [1], "y": [1], "colour": "red"}, "colour: nothing reads it"),
        ({"x": [1], "y": [1, 2], "line": {"color": "red"}}, "y: not one a mark"),
        ({"x": [1], "y": [1], "marker": {"symbol": "star"}, "mode": "markers"}, "'star' is none of"),
        ({"x": [1], "y": [1]}, "a line without a colour"),
    ],
)
def test_what_the_page_would_not_draw_is_refused(trace, says):
    chart = Chart()
    chart.add_scatter(**({"line": {}} | trace))
    with pytest.raises(AssertionError, match=says):
        checked(chart)
