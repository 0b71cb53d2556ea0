"""Predictions of every size on one chart, told apart by verdict; what has no size is left out."""

from benchmarks.attribution.predictions import HIT, MISS, UNMEASURED, Outcome, Prediction
from benchmarks.attribution.spread import Figure
from dashboard.charts.said import WRONG_SIGN, said_and_measured
from tests.dashboard.form import checked


def outcome(change, measured, verdict, unit="ms", subject="attention"):
    prediction = Prediction("c" * 40, subject, change, unit, 512)
    return Outcome(prediction, verdict, None if measured is None else Figure(measured), "")


def test_a_change_stands_by_its_size_under_its_verdict():
    outcomes = [
        outcome(-4.0, -5.0, HIT),
        outcome(-180.0, -717.0, MISS),
        outcome(-0.2, 0.1, MISS, subject="<b>x"),
        outcome(0.3, 0.0, MISS),
        outcome(-1.0, None, UNMEASURED),
        outcome(-9.0, -9.0, HIT, unit="us/GMAC"),
    ]
    figure = checked(said_and_measured(outcomes, "ms"))
    points = {trace.name: trace for trace in figure.traces if trace.mode == "markers"}
    assert {name: (list(trace.x), list(trace.y)) for name, trace in points.items()} == {
        HIT: ([4.0], [5.0]),
        MISS: ([180.0], [717.0]),
        WRONG_SIGN: ([0.2], [0.1]),
    }
    assert points[WRONG_SIGN].customdata[0] == "cccccccc &lt;b&gt;x @512<br>said -0.2, measured +0.1 ms"
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_hits_lie_between_the_two_outer_lines():
    figure = checked(said_and_measured([outcome(-2.0, -3.9, HIT), outcome(2.0, 1.1, HIT)], "ms"))
    lines = [trace for trace in figure.traces if trace.mode == "lines"]
    assert sorted(trace.y[0] / trace.x[0] for trace in lines) == [0.5, 1.0, 2.0]


def test_nothing_measured_is_an_empty_chart():
    assert checked(said_and_measured([outcome(-1.0, None, UNMEASURED)], "ms")).traces == []
