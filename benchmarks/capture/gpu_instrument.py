"""The instruments of a GPU: CUPTI for both sides of a pair, else CUDA events and llama.cpp's own callback."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..attribution.events import Trace
from ..attribution.llama_launches import LaunchOrderError, label_llama_launches
from ..attribution.macs import TensorShape
from ..attribution.replay import with_labels_of
from ..engine import MeasuredEngine, operation_label, weight_table
from ..interleave import SETTLE_S
from ..peers.llama_cpp import LlamaCpp
from ..peers.llama_library import PeerUnavailableError
from . import cuda_events, cupti
from .instrument import observed, trace_by_callback

ALL_LAYERS = 999
"""More layers than any model has: llama.cpp then keeps the whole model on the device."""


class CuptiInstrument:
    """Every kernel, copy and call of the process while a prefill runs."""

    name = "cupti"
    version = cupti.INSTRUMENT_VERSION
    notes: tuple[str, ...] = ()
    gpu_layers = ALL_LAYERS

    def __init__(self) -> None:
        """Raises CuptiUnavailableError."""
        self._capture = cupti.CuptiCapture(operation_label)

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        """With graphs the pass is traced as it is timed, replayed, with labels from a pass without one."""
        engine.observe(self._capture)
        try:
            labelled = self.trace_call(lambda: engine.prefill(tokens))
        finally:
            engine.observe(None)
        if not engine.gates.get("graphs"):
            return labelled
        return with_labels_of(labelled, self.trace_call(lambda: engine.prefill(tokens)))

    def trace_peer(self, model: Path, peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        tensors = tuple(TensorShape(*row) for row in weight_table(model))
        return [
            _labelled(self.trace_call(lambda: peer.prefill(tokens)), tensors, len(tokens), peer.options.ubatch)
            for _ in range(repetitions)
        ]

    def trace_call(self, call: Callable[[], object]) -> Trace:
        """The second of two calls: the first one warms the tracer, and as before a sample the GPU may rest."""
        with self._capture:
            call()
            time.sleep(SETTLE_S)
            self._capture.restart()
            call()
        return self._capture.trace()


def _labelled(trace: Trace, tensors: tuple[TensorShape, ...], nt: int, ubatch: int) -> Trace:
    """llama.cpp names no operation: its products are told apart by the order in which they are launched."""
    try:
        return label_llama_launches(trace, tensors, nt, ubatch)
    except LaunchOrderError as error:
        return replace(trace, notes=(*trace.notes, f"llama.cpp's launches are not told apart by weight: {error}"))


class CudaEventInstrument:
    """Operations by CUDA events; the peer by its evaluation callback, which makes it wait after each node."""

    name = "cuda events"
    version = cuda_events.INSTRUMENT_VERSION
    gpu_layers = ALL_LAYERS

    def __init__(self, why: str) -> None:
        self.notes: tuple[str, ...] = (f"{cuda_events.NOTE} ({why})",)

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        return observed(engine, cuda_events.cupy_recorder(operation_label), tokens)

    def trace_peer(self, model: Path, peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        return trace_by_callback(model, peer, tokens, repetitions)

    def trace_call(self, call: Callable[[], object]) -> Trace:
        raise PeerUnavailableError(f"only CUPTI sees the kernels of other software; {cuda_events.NOTE}")


def gpu_instrument() -> CuptiInstrument | CudaEventInstrument:
    """The best instrument that this process can have."""
    try:
        return CuptiInstrument()
    except cupti.CuptiUnavailableError as error:
        return CudaEventInstrument(str(error))
