"""A chart's plain data is Plotly's form of it, as JSON can hold it."""

import json

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.charts.chart import Chart
from tests.dashboard.conftest import _unpacked


def test_numbers_of_any_kind_arrive_as_they_are():
    chart = Chart()
    chart.add_scatter(x=np.arange(3), y=pd.Series([1.5, float("nan"), 3.0]), customdata=["a", float("nan"), "c"])
    chart.add_bar(x=[np.float64(1), 2], y=np.array(["p", "q"]), base=np.array([0.5, 1.0], dtype=np.float32))
    sent = json.loads(json.dumps(chart.to_dict(), allow_nan=False))["traces"]
    assert _unpacked(sent[0]["x"]) == [0, 1, 2]
    y = _unpacked(sent[0]["y"])
    assert (y[0], np.isnan(y[1]), y[2]) == (1.5, True, 3.0)
    assert sent[0]["customdata"] == ["a", None, "c"]
    assert sent[1]["x"] == [1.0, 2]
    assert sent[1]["y"] == ["p", "q"]
    assert _unpacked(sent[1]["base"]) == [0.5, 1.0]
    assert go.Figure({"data": sent}).data[0].type == "scatter"


def test_updates_add_up_and_lines_cross_the_plot():
    chart = Chart()
    chart.update_xaxes(type="log")
    chart.update_xaxes(dtick=1)
    chart.update_layout(height=300)
    chart.add_line(y=1.0, line={"dash": "dot"})
    chart.add_line(x=2.5, line={"dash": "dash"})
    chart.add_annotation(text="one")
    chart.add_annotation(text="two")
    figure = go.Figure({"data": chart.data, "layout": chart.layout})
    assert (figure.layout.xaxis.type, figure.layout.xaxis.dtick, figure.layout.height) == ("log", 1, 300)
    across, down = figure.layout.shapes
    assert (across.y0, across.y1, across.xref) == (1.0, 1.0, "paper")
    assert (down.x0, down.x1, down.yref) == (2.5, 2.5, "paper")
    assert [note.text for note in figure.layout.annotations] == ["one", "two"]
