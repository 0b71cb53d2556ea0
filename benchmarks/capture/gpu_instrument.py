"""The instruments of a GPU: CUPTI for both sides of a pair, else nsys, else CUDA events and llama.cpp's own callback."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..attribution.errors import UserFacingError
from ..attribution.events import Trace
from ..attribution.llama_launches import LaunchOrderError, label_llama_launches
from ..attribution.macs import TensorShape
from ..attribution.replay import with_labels_of
from ..engine import MeasuredEngine, operation_label, weight_table
from ..interleave import SETTLE_S
from ..peers.llama_cpp import LlamaCpp
from ..peers.llama_library import PeerUnavailableError
from . import cuda_events, cupti, nsys
from .instrument import NamesAtOnce, observed, observing, trace_by_callback

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
        return self.named(engine, tokens, self.passes(engine, tokens, 1))[0]

    def passes(self, engine: MeasuredEngine, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        """With graphs a pass is traced as it is timed, replayed: no operation is named then."""
        if not engine.gates.get("graphs"):
            return [self._observed(engine, tokens) for _ in range(repetitions)]
        ids = _ids(tokens)
        return [self.trace_call(lambda: engine.prefill(ids)) for _ in range(repetitions)]

    def named(self, engine: MeasuredEngine, tokens: Sequence[int], passes: Sequence[Trace]) -> list[Trace]:
        """With the labels of a pass launched kernel by kernel, which lengthens the gaps in every graph traced after it."""
        if not engine.gates.get("graphs"):
            return list(passes)
        labelled = self._observed(engine, tokens)
        return [with_labels_of(labelled, one) for one in passes]

    def _observed(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        ids = _ids(tokens)
        with observing(engine, self._capture):
            return self.trace_call(lambda: engine.prefill(ids))

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        tensors = tuple(TensorShape(*row) for row in weight_table(peer.weights.path))
        return [
            _labelled(self.trace_call(lambda: peer.prefill(tokens)), tensors, len(tokens), peer.options.ubatch)
            for _ in range(repetitions)
        ]

    def trace_call(self, call: Callable[[], int]) -> Trace:
        """The second of two calls: the first one warms the tracer, and as before a sample the GPU may rest."""
        with self._capture:
            call()
            time.sleep(SETTLE_S)
            self._capture.restart()
            self._capture.ended(call())
        return self._capture.trace()


def _ids(tokens: Sequence[int]) -> Any:
    """Made beforehand: a list of thousands becomes an array in 0.2 ms, which would be a gap at the start of the window."""
    return np.asarray(tokens, dtype=np.int64)


def _labelled(trace: Trace, tensors: tuple[TensorShape, ...], nt: int, ubatch: int) -> Trace:
    """llama.cpp names no operation: its products are told apart by the order in which they are launched."""
    try:
        return label_llama_launches(trace, tensors, nt, ubatch)
    except LaunchOrderError as error:
        return replace(trace, notes=(*trace.notes, f"llama.cpp's launches are not told apart by weight: {error}"))


class CudaEventInstrument(NamesAtOnce):
    """Operations by CUDA events; the peer by its evaluation callback, which makes it wait after each node."""

    name = "cuda events"
    version = cuda_events.INSTRUMENT_VERSION
    gpu_layers = ALL_LAYERS

    def __init__(self, why: str) -> None:
        self.notes: tuple[str, ...] = (f"{cuda_events.NOTE} ({why})",)

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        return observed(engine, cuda_events.cupy_recorder(operation_label), tokens)

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        return trace_by_callback(peer, tokens, repetitions)

    def trace_call(self, call: Callable[[], int]) -> Trace:
        raise PeerUnavailableError(f"only CUPTI sees the kernels of other software; {cuda_events.NOTE}")


class NsysInstrument(NamesAtOnce):
    """Every kernel, copy and call of a child process that runs the same prefills under nsys."""

    name = "nsys"
    version = nsys.INSTRUMENT_VERSION
    gpu_layers = ALL_LAYERS

    def __init__(self, binary: Path, why: str) -> None:
        self._binary = binary
        self.notes: tuple[str, ...] = (f"{nsys.NOTE} ({why})",)
        self._failed = ""
        """Why nsys is asked no more: each time it takes seconds to fail again."""
        self._kept: dict[tuple[int, int], list[Trace]] = {}
        """Passes of one child that nobody asked for yet, by engine and prompt length: a child loads the model anew."""

    def trace_engine(self, engine: MeasuredEngine, tokens: Sequence[int]) -> Trace:
        kept = self._kept.setdefault((id(engine), len(tokens)), [])
        if not kept and not self._failed:
            try:
                kept.extend(self._engine_passes(engine, tokens))
            except UserFacingError as error:
                self._failed = f"nsys failed: {error}"
        if kept:
            return kept.pop(0)
        events = CudaEventInstrument(self._failed)
        return replace(events.trace_engine(engine, tokens), notes=events.notes)

    def _engine_passes(self, engine: MeasuredEngine, tokens: Sequence[int]) -> list[Trace]:
        # The gates in force, not those asked for: the environment may have set some.
        options = replace(engine.options, backend=engine.backend, gates=engine.gates)
        trace = nsys.profile(self._binary, {**_request(engine.path, tokens), "engine": asdict(options)})
        labelled = nsys.labelled(trace, tuple(engine.operations(len(tokens))))
        return [with_labels_of(labelled, one) for one in nsys.passes(trace)]

    def trace_peer(self, peer: LlamaCpp, tokens: Sequence[int], repetitions: int) -> list[Trace]:
        tensors = tuple(TensorShape(*row) for row in weight_table(peer.weights.path))
        try:
            trace = nsys.profile(
                self._binary, {**_request(peer.weights.path, tokens, repetitions), "peer": asdict(peer.options)}
            )
            found = nsys.passes(trace)
        except UserFacingError as error:
            raise PeerUnavailableError(f"llama.cpp under nsys: {error}") from error
        return [_labelled(one, tensors, len(tokens), peer.options.ubatch) for one in found]

    def trace_call(self, call: Callable[[], int]) -> Trace:
        raise PeerUnavailableError(f"only CUPTI sees other software in this process; {nsys.NOTE}")


_NSYS_PASSES = 3


def _request(model: Path, tokens: Sequence[int], passes: int = _NSYS_PASSES) -> dict[str, object]:
    return {"model": str(model.resolve()), "tokens": [int(token) for token in tokens], "passes": passes}


def gpu_instrument() -> CuptiInstrument | NsysInstrument | CudaEventInstrument:
    """The best instrument that this process can have."""
    try:
        return CuptiInstrument()
    except cupti.CuptiUnavailableError as error:
        why = str(error)
    try:
        binary = nsys.nsys_binary()
        if binary is not None:
            nsys.check(binary)
    except nsys.NsysError as error:
        return CudaEventInstrument(f"{why}; {error}")
    return CudaEventInstrument(f"{why}; nsys is not installed") if binary is None else NsysInstrument(binary, why)
