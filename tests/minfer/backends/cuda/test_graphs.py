"""Which passes become graphs, on a device that only takes down what happens."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from minfer.backends.cuda.arrays import Arena
from minfer.backends.cuda.graphs import Graphs


class Stream:
    def __init__(self):
        self.log = []

    def begin_capture(self):
        self.log.append("begin")

    def end_capture(self):
        self.log.append("end")
        return SimpleNamespace(launch=lambda stream: stream.log.append("replay"))


@pytest.fixture
def machine():
    stream = Stream()
    arena = Arena(lambda size: SimpleNamespace(pointer=1 << 20))
    graphs = Graphs(SimpleNamespace(stream=stream), arena)

    def one_pass(key="prefill", eager=False):
        def body():
            stream.log.append("body")
            return arena.take((8,), "f32")

        arena.settle()
        stream.log.clear()
        result = graphs.run(key, body, eager=eager)
        return list(stream.log), result.pointer

    return one_pass


def test_a_pass_runs_is_captured_then_replayed(machine):
    assert machine()[0] == ["body"]
    assert machine()[0] == ["begin", "body", "end", "replay"]
    assert machine()[0] == ["replay"]


def test_a_decode_step_is_captured_at_once_over_the_same_addresses(machine):
    log, first = machine(eager=True)
    assert log == ["body", "begin", "body", "end"]
    assert machine(eager=True) == (["replay"], first)


def test_another_key_is_another_graph(machine):
    for _ in range(3):
        machine("a")
    assert machine("b")[0] == ["body"]
    assert machine("a")[0] == ["replay"]


def test_the_graph_unused_for_longest_goes_first(machine):
    for key in range(17):
        machine(key)
        machine(key)
    assert machine(0)[0][0] == "begin"
    assert machine(16)[0] == ["replay"]


def test_a_pass_that_fails_while_captured_ends_the_capture():
    stream = Stream()
    graphs = Graphs(SimpleNamespace(stream=stream), Arena(lambda size: None))
    graphs.run("a", lambda: None, eager=False)
    with pytest.raises(ZeroDivisionError):
        graphs.run("a", lambda: 1 // 0, eager=False)
    assert stream.log == ["begin", "end"]
