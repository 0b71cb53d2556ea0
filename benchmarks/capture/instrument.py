"""The instrument of this machine: what turns one prefill, the engine's or the peer's, into a trace.

On a CPU it reads the host clock around operations; on a GPU it listens to CUPTI. Both sides of a pair are always taken with
the same instrument.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..attribution.events import Trace
from ..engine import MeasuredEngine, operation_label
from ..peers.llama_cpp import LlamaCpp, PeerOptions
from .machine import usable_cores
from .spans import INSTRUMENT_VERSION as SPANS_VERSION
from .spans import SpanRecorder


class Instrument(Protocol):
    """Takes traces. ``version`` rises when the way of measuring changes."""

    name: str
    version: int

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        """One prefill of the engine, its operations named."""
        ...

    def open_peer(self, model: Path, nt: int, ubatch: int, *, traced: bool) -> LlamaCpp:
        """llama.cpp with the same weights on the same device. Raises PeerUnavailableError."""
        ...

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int]) -> Trace:
        """One prefill of a peer opened with ``traced=True``."""
        ...


class SpanInstrument:
    """The host clock around each operation of the engine, and around each graph node of llama.cpp."""

    name = "spans"
    version = SPANS_VERSION

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        recorder = SpanRecorder(operation_label)
        engine.observe(recorder)
        try:
            with recorder:
                engine.prefill(tokens)
        finally:
            engine.observe(None)
        return recorder.trace()

    def open_peer(self, model: Path, nt: int, ubatch: int, *, traced: bool) -> LlamaCpp:
        return LlamaCpp(model, PeerOptions(nt, ubatch, threads=usable_cores()), traced=traced)

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int]) -> Trace:
        return peer.traced_prefill(tokens)


def instrument_for(engine: MeasuredEngine) -> Instrument:
    """The instrument that sees this engine's backend."""
    if engine.backend == "cuda":
        from .gpu_instrument import gpu_instrument

        return gpu_instrument()
    return SpanInstrument()
