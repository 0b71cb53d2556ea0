"""What a window samples in turn: the engine, the same engine with other gates, and the peer at each of its ubatches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .attribution.events import Trace
from .attribution.record import Wall
from .capture.instrument import Instrument, open_peer
from .capture.memory import PeakMemory
from .decomposed import decomposed
from .engine import MeasuredEngine
from .peers.llama_cpp import LlamaCpp, LlamaWeights
from .peers.llama_library import PeerUnavailableError

PEER_UBATCHES = (512, 2048, 4096)
"""The peer runs at each of these that differ at the prompt's length; the fastest is the baseline, all are kept."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the prompt."""

    name: str
    prefill: Callable[[], int]
    """Untraced; host ns."""
    described: Callable[[], Wall]
    """The wall's description; its samples and its time taken apart are still to come."""
    passes: Callable[[], list[Trace]]
    """What is to be traced before anything launches kernels one by one under the tracer."""
    taken_apart: Callable[[Wall, Sequence[Trace]], Wall]
    """The wall decomposed, of those passes and what they do not tell."""
    peak_bytes: Callable[[], int | None]
    """Memory that it took, asked right after it has run for the first time and before anything else is opened."""
    close: Callable[[], None]


def engine_arm(
    name: str,
    engine: MeasuredEngine,
    peak: int | None,
    instrument: Instrument,
    tokens: Sequence[int],
    traced: int,
    notes: list[str],
) -> Arm:
    """The engine as it was opened; ``name`` tells it from the same engine with other gates."""

    def described() -> Wall:
        return Wall(
            engine=engine.name,
            engine_version=engine.version,
            backend=engine.backend,
            nt=len(tokens),
            ubatch=engine.ubatch,
            gates=engine.gates,
            samples_ns=(),
            memory_bytes=engine.memory(),
        )

    def taken_apart(wall: Wall, passes: Sequence[Trace]) -> Wall:
        return _taken_apart(wall, instrument.named(engine, tokens, passes), notes)

    return Arm(
        name=name,
        prefill=lambda: engine.prefill(tokens),
        described=described,
        passes=lambda: instrument.passes(engine, tokens, traced),
        taken_apart=taken_apart,
        peak_bytes=lambda: peak,
        close=lambda: None,
    )


def _taken_apart(wall: Wall, traces: Sequence[Trace], notes: list[str]) -> Wall:
    """The wall decomposed, and what its traces have to say passed on to the record."""
    notes.extend(note for trace in traces for note in trace.notes)
    return decomposed(wall, traces)


def peer_ubatches(nt: int) -> tuple[int, ...]:
    """The peer's batch sizes to try at ``nt``: always at least two, so that "at its best" means something."""
    sizes = dict.fromkeys(min(ubatch, nt) for ubatch in PEER_UBATCHES)
    return tuple(sizes) if len(sizes) > 1 else (nt, max(1, nt // 2))


@dataclass(frozen=True, slots=True)
class PeerWeights:
    """llama.cpp's copy of the model, which all of its arms in a window share."""

    weights: LlamaWeights
    nbytes: int | None
    """Memory that loading it took: each arm's own besides what its context takes."""


@contextmanager
def peer_weights(model: Path, instrument: Instrument, notes: list[str]) -> Iterator[PeerWeights | None]:
    """Loaded for the body; None, with a note, where llama.cpp cannot be had."""
    memory = PeakMemory(on_device=instrument.gpu_layers > 0)
    try:
        weights = LlamaWeights(model, instrument.gpu_layers)
    except PeerUnavailableError as error:
        notes.append(f"no peer: {error}")
        yield None
        return
    try:
        yield PeerWeights(weights, memory.bytes())
    finally:
        weights.close()


def peer_arms(
    shared: PeerWeights,
    instrument: Instrument,
    tokens: Sequence[int],
    ubatches: Sequence[int],
    traced: int,
    notes: list[str],
) -> Iterator[Arm]:
    """llama.cpp in this process at each ubatch, each opened when it is asked for; none, with a note, if it cannot be had."""
    try:
        for ubatch in ubatches:
            memory = PeakMemory(on_device=instrument.gpu_layers > 0)
            peer = open_peer(shared.weights, len(tokens), ubatch)
            yield _peer_arm(peer, shared.nbytes, memory, instrument, tokens, traced, notes)
    except PeerUnavailableError as error:
        notes.append(f"no peer: {error}")


def _peer_arm(
    peer: LlamaCpp,
    weights: int | None,
    memory: PeakMemory,
    instrument: Instrument,
    tokens: Sequence[int],
    traced: int,
    notes: list[str],
) -> Arm:
    def described() -> Wall:
        return Wall(
            engine=peer.name,
            engine_version=peer.version,
            backend=peer.backend,
            nt=len(tokens),
            ubatch=peer.options.ubatch,
            gates={},
            samples_ns=(),
        )

    def taken_apart(wall: Wall, passes: Sequence[Trace]) -> Wall:
        try:
            return _taken_apart(wall, instrument.trace_peer(peer, tokens, traced), notes)
        except PeerUnavailableError as error:
            notes.append(str(error))
            return replace(wall, why_not_decomposed=str(error))

    def peak() -> int | None:
        # On a CPU both share this process's memory, and the file's pages: no figure would be the peer's own.
        own = memory.bytes() if peer.backend == "cuda" else None
        return None if own is None or weights is None else weights + own

    return Arm(
        name=f"{peer.name} {peer.options.ubatch}",
        prefill=lambda: peer.prefill(tokens),
        described=described,
        passes=list,
        taken_apart=taken_apart,
        peak_bytes=peak,
        close=peer.close,
    )
