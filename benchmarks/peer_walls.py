"""Walls of peers that are not sampled in turn with the engine, but in the same window: llama-bench and Transformers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from .attribution.record import PEER, ClassTime, Decomposition, Wall
from .capture.instrument import Instrument
from .capture.memory import PeakMemory
from .decomposed import decomposed
from .engine import decoder_shape
from .peers.llama_bench import BenchOptions, kept_samples, llama_bench_binary, run_llama_bench
from .peers.llama_library import PeerUnavailableError
from .peers.transformers import DecoderShape, TransformersPeer

IN_PROCESS, OWN_PROCESS = PEER, "llama-bench"


def llama_bench_walls(
    model: Path,
    options: BenchOptions,
    present: Sequence[Wall],
    notes: list[str],
    say: Callable[[str], None],
) -> list[Wall]:
    """One wall an ubatch, empty without a binary.

    Where llama.cpp was also measured in process the engine is named "llama-bench", to stand beside it; else these walls are
    the peer's. They hold no classes, and their samples were not taken in turn with ours.
    """
    try:
        binary = llama_bench_binary()
        if binary is None:
            return []
        say(f"nt {options.nt}: {binary.name}")
        results = run_llama_bench(binary, model, options)
    except PeerUnavailableError as error:
        notes.append(str(error))
        return []
    name = OWN_PROCESS if any(wall.engine == IN_PROCESS and wall.nt == options.nt for wall in present) else IN_PROCESS
    return [
        Wall(
            engine=name,
            engine_version=f"llama-bench {result.commit or 'of unknown build'}",
            backend=result.backend or "unknown",
            nt=options.nt,
            ubatch=ubatch,
            gates={},
            samples_ns=kept_samples(result),
            why_not_decomposed="llama-bench measures walls; classes need llama.cpp in this process",
        )
        for ubatch, result in zip(options.ubatches, results, strict=True)
    ]


def transformers_walls(
    model: Path,
    instrument: Instrument,
    tokens: Sequence[int],
    repetitions: int,
    notes: list[str],
    say: Callable[[str], None],
) -> list[Wall]:
    """Hugging Face Transformers in bf16 on the same shape, eager and compiled; empty unless MINFER_PEERS names it.

    Compiling takes longer than everything else in a window, so it is not done for every commit of a history.
    """
    if "transformers" not in os.environ.get("MINFER_PEERS", "").split(","):
        return []
    walls = []
    try:
        shape = decoder_shape(model)
        for compiled in (False, True):
            say(f"nt {len(tokens)}: transformers, {'compiled' if compiled else 'eager'}")
            walls.append(_transformers_wall(shape, instrument, tokens, repetitions, compiled, notes))
        notes.append("transformers: random bf16 weights of the same shape, not the file's: a peer in speed only")
    except PeerUnavailableError as error:
        notes.append(str(error))
    return walls


def _transformers_wall(
    shape: DecoderShape, instrument: Instrument, tokens: Sequence[int], repetitions: int, compiled: bool, notes: list[str]
) -> Wall:
    on_device = instrument.gpu_layers > 0
    memory = PeakMemory(on_device)
    peer = TransformersPeer(shape, len(tokens), device="cuda" if on_device else "cpu", compiled=compiled)
    try:
        for _ in range(3):
            peer.prefill(tokens)
        wall = Wall(
            engine=peer.name,
            engine_version=peer.version,
            backend="cuda" if on_device else "cpu",
            nt=len(tokens),
            ubatch=len(tokens),
            gates={"compiled": compiled},
            peak_memory_bytes=memory.bytes(),
            samples_ns=tuple(peer.prefill(tokens) for _ in range(repetitions)),
        )
        try:
            traced = decomposed(wall, [instrument.trace_call(lambda: peer.prefill(tokens)) for _ in range(3)])
        except PeerUnavailableError as error:
            notes.append(str(error))
            return replace(wall, why_not_decomposed=str(error))
    finally:
        peer.close()
    assert traced.decomposition is not None
    return replace(traced, decomposition=with_product_macs(traced.decomposition, shape.macs(len(tokens))))


def with_product_macs(part: Decomposition, macs: int) -> Decomposition:
    """Give the matrix products of a foreign engine their work, where one class holds them all; else leave it unknown."""
    products = [found.name for found in part.classes if found.name.endswith(" GEMM")]
    if len(products) != 1:
        return part

    def credited(found: ClassTime) -> ClassTime:
        return replace(found, macs=macs) if found.name == products[0] else found

    return replace(part, classes=tuple(credited(found) for found in part.classes))
