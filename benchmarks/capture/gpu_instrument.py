"""The instruments of a GPU: CUPTI for both sides of a pair, else CUDA events and llama.cpp's own callback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..attribution.events import Trace
from ..attribution.llama_launches import LaunchOrderError, label_llama_launches
from ..attribution.macs import TensorShape
from ..engine import MeasuredEngine, operation_label, weight_table
from ..peers.llama_cpp import LlamaCpp, PeerOptions
from . import cuda_events, cupti
from .machine import usable_cores

ALL_LAYERS = 999
"""llama.cpp's own way to say "as many as there are"."""


def _open_peer(model: Path, nt: int, ubatch: int, *, traced: bool) -> LlamaCpp:
    return LlamaCpp(model, PeerOptions(nt, ubatch, threads=usable_cores(), gpu_layers=ALL_LAYERS), traced=traced)


class CuptiInstrument:
    """Every kernel, copy and call of the process while a prefill runs."""

    name = "cupti"
    version = cupti.INSTRUMENT_VERSION

    def __init__(self) -> None:
        """Raises CuptiUnavailableError."""
        self._capture = cupti.CuptiCapture(operation_label)
        self._tensors: tuple[TensorShape, ...] = ()

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        engine.observe(self._capture)
        try:
            with self._capture:
                engine.prefill(tokens)
        finally:
            engine.observe(None)
        return self._capture.trace()

    def open_peer(self, model: Path, nt: int, ubatch: int, *, traced: bool) -> LlamaCpp:
        """``traced`` changes nothing in llama.cpp itself: its callback would make it wait after each node."""
        self._tensors = tuple(TensorShape(*row) for row in weight_table(model))
        return _open_peer(model, nt, ubatch, traced=False)

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int]) -> Trace:
        with self._capture:
            peer.prefill(tokens)
        trace = self._capture.trace()
        try:
            return label_llama_launches(trace, self._tensors, len(tokens), peer.options.ubatch)
        except LaunchOrderError as error:
            return replace(trace, notes=(*trace.notes, f"llama.cpp's launches are not told apart by weight: {error}"))


class CudaEventInstrument:
    """Operations by CUDA events; the peer by its evaluation callback, which makes it wait after each node."""

    name = "cuda events"
    version = cuda_events.INSTRUMENT_VERSION

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        recorder = cuda_events.cupy_recorder(operation_label)
        engine.observe(recorder)
        try:
            with recorder:
                engine.prefill(tokens)
        finally:
            engine.observe(None)
        return recorder.trace()

    def open_peer(self, model: Path, nt: int, ubatch: int, *, traced: bool) -> LlamaCpp:
        return _open_peer(model, nt, ubatch, traced=traced)

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int]) -> Trace:
        return peer.traced_prefill(tokens)


def gpu_instrument() -> CuptiInstrument | CudaEventInstrument:
    """The best instrument that this process can have."""
    try:
        return CuptiInstrument()
    except cupti.CuptiUnavailableError:
        return CudaEventInstrument()
