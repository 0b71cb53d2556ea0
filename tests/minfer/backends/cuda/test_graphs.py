"""Which passes become graphs, on a device that only takes down what happens."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from minfer.backends.cuda.arrays import Arena
from minfer.backends.cuda.graphs import Graphs


class Stream:
    def __init__(self):
        self.log = []
        self.captured = 0

    def begin_capture(self):
        self.log.append("begin")

    def end_capture(self):
        self.log.append("end")
        graph, self.captured = self.captured, self.captured + 1
        return SimpleNamespace(launch=lambda stream: stream.log.append(f"replay {graph}"))


@pytest.fixture
def machine():
    stream = Stream()
    arena = Arena(lambda size: SimpleNamespace(pointer=1 << 20))
    device = SimpleNamespace(stream=stream, release=lambda: stream.log.append("release"))
    graphs = Graphs(device, arena)

    def one_pass(key="prefill", eager=False, layers=0):
        def body():
            stream.log.append("body")
            for layer in range(layers):
                stream.log.append(f"layer {layer}")
                graphs.layer()
            return arena.take((8,), "f32")

        arena.settle()
        stream.log.clear()
        result = graphs.run(key, body, eager=eager)
        return list(stream.log), result.pointer

    return one_pass


def test_a_pass_runs_is_captured_then_replayed(machine):
    assert machine()[0] == ["body"]
    assert machine()[0] == ["begin", "body", "end", "replay 0"]
    assert machine()[0] == ["replay 0"]


def test_short_graphs_are_launched_before_the_long_rest(machine):
    layers = [f"layer {i}" for i in range(9)]
    assert machine(layers=9)[0] == ["body", *layers]
    cut = ["release", "end", "begin"]
    captured = ["begin", "body", layers[0], *cut, layers[1], *cut, *layers[2:5], *cut, *layers[5:], "end"]
    replayed = [f"replay {i}" for i in range(4)]
    assert machine(layers=9)[0] == [*captured, *replayed]
    assert machine(layers=9)[0] == replayed
    # Another pass counts its layers from its own first one.
    assert machine("other", layers=1)[0] == ["body", "layer 0"]
    assert machine("other", layers=1)[0] == ["begin", "body", "layer 0", *cut, "end", "replay 4", "replay 5"]


def test_a_decode_step_is_captured_at_once_over_the_same_addresses(machine):
    log, first = machine(eager=True)
    assert log == ["body", "begin", "body", "end"]
    assert machine(eager=True) == (["replay 0"], first)


def test_another_key_is_another_graph(machine):
    for _ in range(3):
        machine("a")
    assert machine("b")[0] == ["body"]
    assert machine("a")[0] == ["replay 0"]


def test_the_graph_unused_for_longest_goes_first(machine):
    for key in range(17):
        machine(key)
        machine(key)
    assert machine(0)[0][0] == "begin"
    assert machine(16)[0] == ["replay 16"]


def test_a_pass_that_fails_while_captured_ends_the_capture():
    stream = Stream()
    graphs = Graphs(SimpleNamespace(stream=stream), Arena(lambda size: None))
    graphs.run("a", lambda: None, eager=False)
    with pytest.raises(ZeroDivisionError):
        graphs.run("a", lambda: 1 // 0, eager=False)
    assert stream.log == ["begin", "end"]


def test_a_pass_that_fails_between_two_graphs_leaves_nothing_open():
    stream = Stream()
    graphs = Graphs(SimpleNamespace(stream=stream, release=lambda: None), Arena(lambda size: None))
    graphs.run("a", lambda: None, eager=False)

    def fails():
        graphs.layer()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        graphs.run("a", fails, eager=False)
    assert stream.log == ["begin", "end", "begin", "end"]
    graphs.layer()
    assert stream.log == ["begin", "end", "begin", "end"]
