"""The instrument of this machine: what turns one prefill, the engine's or the peer's, into a trace.

On a CPU it reads the host clock around operations; on a GPU it listens to CUPTI. Both sides of a pair are always taken with
the same instrument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ..attribution.events import Trace
from ..engine import MeasuredEngine, operation_label
from ..peers.llama_cpp import LlamaCpp, LlamaWeights, PeerOptions
from ..peers.llama_library import PeerUnavailableError
from .machine import usable_cores
from .spans import INSTRUMENT_VERSION as SPANS_VERSION
from .spans import SpanRecorder


class Instrument(Protocol):
    """Takes traces. ``version`` rises when the way of measuring changes."""

    name: str
    version: int
    notes: tuple[str, ...]
    """What a reader of the record must know about this instrument."""
    gpu_layers: int
    """Layers that the peer keeps on the device."""

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        """One prefill of the engine, its operations named."""
        ...

    def passes(self, engine: MeasuredEngine, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        """Prefills of the engine as they are timed; their operations may still be unnamed."""
        ...

    def named(self, engine: MeasuredEngine, tokens: Sequence[int], passes: Sequence[Trace]) -> list[Trace]:
        """The same with their operations named, for which the engine may have to run once more, otherwise."""
        ...

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        """Prefills of the warm peer. Raises PeerUnavailableError."""
        ...

    def trace_call(self, call: Callable[[], int]) -> Trace:
        """Whatever the device does in the ns that ``call`` says it took, up to its end.

        Raises PeerUnavailableError where this instrument cannot see it.
        """
        ...


class NamesAtOnce:
    """Of an instrument whose traces name their operations as they are taken."""

    def passes(self, engine: MeasuredEngine, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        return [self.trace_engine(engine, tokens) for _ in range(repetitions)]

    def named(self, engine: MeasuredEngine, tokens: Sequence[int], passes: Sequence[Trace]) -> list[Trace]:
        return list(passes)

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        raise NotImplementedError


@contextmanager
def observing(engine: MeasuredEngine, observer: Any) -> Iterator[None]:
    """``observer`` is told of every operation of the engine inside the body, and of none after it."""
    engine.observe(observer)
    try:
        yield
    finally:
        engine.observe(None)


def observed(engine: MeasuredEngine, recorder: Any, tokens: Sequence[int]) -> Trace:
    """One prefill with ``recorder``, an observer and a context manager, told of every operation."""
    with observing(engine, recorder), recorder:
        engine.prefill(tokens)
    trace: Trace = recorder.trace()
    return trace


def trace_by_callback(peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
    """llama.cpp by its own callback, which it takes only when a context is made: the untraced one cannot be used."""
    with LlamaCpp(peer.weights, peer.options, traced=True) as traced:
        traced.prefill(tokens)
        return [traced.traced_prefill(tokens) for _ in range(repetitions)]


class SpanInstrument(NamesAtOnce):
    """The host clock around each operation of the engine, and around each graph node of llama.cpp."""

    name = "spans"
    version = SPANS_VERSION
    notes: tuple[str, ...] = ()
    gpu_layers = 0

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        return observed(engine, SpanRecorder(operation_label), tokens)

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        return trace_by_callback(peer, tokens, repetitions)

    def trace_call(self, call: Callable[[], int]) -> Trace:
        raise PeerUnavailableError("only CUPTI sees the kernels of other software")


def instrument_for(engine: MeasuredEngine) -> Instrument:
    """The best instrument that sees this engine's backend."""
    if engine.backend != "cuda":
        return SpanInstrument()
    from .gpu_instrument import gpu_instrument

    return gpu_instrument()


def open_peer(weights: LlamaWeights, nt: int, ubatch: int) -> LlamaCpp:
    """llama.cpp on the device that holds its weights. Raises PeerUnavailableError."""
    return LlamaCpp(weights, PeerOptions(nt, ubatch, threads=usable_cores(), gpu_layers=weights.gpu_layers))
