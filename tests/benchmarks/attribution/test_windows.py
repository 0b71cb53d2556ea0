"""Windows by name, iteration and span: exactly what was asked for, or one line that says what there is."""

import pytest

from benchmarks.attribution.events import TraceError
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.windows import WHOLE, choose
from tests.benchmarks.attribution.ingest.builders import T0, nsys_sqlite


@pytest.fixture
def trace(tmp_path):
    return open_trace(nsys_sqlite(tmp_path / "t.sqlite"))


@pytest.fixture
def steps(tmp_path):
    ranges = [(T0 + 100 * i, T0 + 100 * i + 90, 1001, f"ProfilerStep#{7 + i}") for i in range(3)]
    return open_trace(nsys_sqlite(tmp_path / "s.sqlite", ranges=ranges))


def test_the_default_is_the_whole_trace_and_says_so(trace):
    window = choose(trace)
    assert window.kind == WHOLE
    assert window.edges is None
    assert "the whole trace" in window.sentence


def test_the_default_needs_no_range(tmp_path):
    assert choose(open_trace(nsys_sqlite(tmp_path / "t.sqlite", leave_out=["NVTX"]))).kind == WHOLE


@pytest.mark.parametrize(("iteration", "edges"), [(0, (T0 - 10, T0 + 350)), (1, (T0 + 390, T0 + 1100))])
def test_an_occurrence_of_a_range(trace, iteration, edges):
    window = choose(trace, range_name="step", iteration=iteration)
    assert window.edges == edges
    assert (window.occurrence, window.occurrences) == (iteration, 2)


def test_a_name_that_occurs_twice_gives_the_first_and_a_failed_check(trace):
    window = choose(trace, range_name="step")
    assert window.edges == (T0 - 10, T0 + 350)
    (check,) = [check for check in window.checks if check.passed is False]
    assert check.name == "one range of that name"
    assert "--iteration 0..1" in check.detail


def test_an_iteration_by_the_number_in_its_name(steps):
    assert choose(steps, iteration=8).edges == (T0 + 100, T0 + 190)
    with pytest.raises(TraceError, match="no iteration 3; it holds iterations 7, 8, 9"):
        choose(steps, iteration=3)


def test_kernels_that_end_after_the_range_that_launched_them_are_counted(tmp_path):
    ranges = [(T0 + 340, T0 + 700, 1001, "late"), (T0 + 340, T0 + 2000, 1001, "wide")]
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", ranges=ranges))
    late = {check.name: check for check in choose(trace, range_name="late").checks}["range holds its kernels"]
    # Thread 1001 launches kernel 3 at +350; it runs from +400 to +1000. Kernel 4 is another thread's.
    assert late.passed is False
    assert late.detail.startswith("1 of 1 kernels")
    assert choose(trace, range_name="wide").checks[-1].passed is True


def test_whether_a_range_holds_its_kernels_is_unknown_without_calls(tmp_path):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", leave_out=["CUPTI_ACTIVITY_KIND_RUNTIME"]))
    assert choose(trace, range_name="step", iteration=0).checks[-1].passed is None


@pytest.mark.parametrize(
    ("span", "edges"),
    [
        (f"{T0 + 5}:{T0 + 700}", (T0 + 5, T0 + 700)),
        ("0us:0.5us", (T0, T0 + 500)),
        (":0.25us", (T0, T0 + 250)),
        ("0.4us:", (T0 + 400, T0 + 1000)),
        ("100ns:1us", (T0 + 100, T0 + 1000)),
    ],
)
def test_spans(trace, span, edges):
    assert choose(trace, span=span).edges == edges


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"range_name": "stpe"}, "no range named 'stpe'; it holds step"),
        ({"range_name": "step", "iteration": 2}, "occurs 2 times; expected --iteration 0..1"),
        ({"iteration": 1}, "no range numbers itself; it holds"),
        ({"span": "5"}, "expected A:B"),
        ({"span": "5:x"}, "'x' is no time"),
        ({"span": "1us:0us"}, "ends at or before its start"),
        ({"span": "5s:6s"}, "lies outside the trace"),
        ({"span": "0us:1us", "range_name": "step"}, "exclude each other"),
    ],
)
def test_what_the_trace_does_not_hold_is_refused(trace, arguments, expected):
    with pytest.raises(TraceError) as error:
        choose(trace, **arguments)
    assert expected in str(error.value)


def test_ranges_that_are_not_there_are_refused(tmp_path):
    trace = open_trace(nsys_sqlite(tmp_path / "t.sqlite", leave_out=["NVTX"]))
    with pytest.raises(TraceError, match="holds no ranges"):
        choose(trace, range_name="step")
