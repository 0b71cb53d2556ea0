"""Operations between two events, on a clock made up here."""

from __future__ import annotations

from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.events import OperationLabel
from benchmarks.capture.cuda_events import NOTE, EventRecorder


class Clock:
    """Hands out events; each records the milliseconds that the device has worked so far."""

    def __init__(self):
        self.now = 0.0

    def event(self):
        return Event(self)


class Event:
    def __init__(self, clock):
        self._clock, self.at = clock, None

    def record(self):
        self.at = self._clock.now

    def synchronize(self):
        assert self.at is not None


def recorded():
    clock = Clock()
    recorder = EventRecorder(
        lambda operation: OperationLabel(operation, kernel_class="norm"), clock.event, lambda a, b: b.at - a.at
    )
    with recorder:
        clock.now = 0.25
        for name, milliseconds in (("attn_norm", 0.5), ("ffn_norm", 1.0), ("attn_norm", 0.125)):
            recorder.begin(name)
            clock.now += milliseconds
            recorder.end(name)
        clock.now += 0.25
    return recorder.trace()


def test_an_operation_lasts_from_its_first_event_to_its_second():
    trace = recorded()
    assert (trace.launches.end - trace.launches.start).tolist() == [500_000, 1_000_000, 125_000]
    assert [trace.names[i] for i in trace.launches.name] == ["attn_norm", "ffn_norm", "attn_norm"]
    assert trace.launches.operation.tolist() == [0, 1, 2]


def test_the_record_says_that_it_was_taken_with_events():
    assert recorded().notes == (NOTE,)


def test_the_trace_decomposes_and_closes():
    result = decompose(recorded())
    assert result.wall_ns == 2_125_000
    assert result.busy_ns == 1_625_000
    assert result.busy_ns + sum(result.gap_ns.values()) == result.wall_ns
