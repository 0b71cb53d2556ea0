"""What the CI gate measures: a whole prefill of the engine, or a fixed piece of CPU work that needs no engine at all.

Every worker imports this module, so what only the prefill needs is imported inside it.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from .protocol import GAPS, WALL, Request

if TYPE_CHECKING:
    from ..engine import MeasuredEngine

DEFAULT_NT = 64

BURSTS = 20
"""Bursts a class and sample; the fastest one counts, because whoever shares the core can only make one slower."""
UNITS = 100
"""Equal units of work a burst; an injected slowdown of 3 % makes 103 of them."""

WAKING_PASSES, WAKING_S = 3, 0.3
"""On a GPU: passes that load, compile and capture, then so many seconds of work before the first one that counts."""
WALL_S = 0.05
"""Seconds of passes that one sample of a wall is the median of. Loading the model takes many times that."""


def deterministic(request: Request) -> Callable[[], dict[str, float]]:
    """Fixed work in four classes, in seconds of this process's own CPU time: what other processes use is not counted.

    Each class is one loop in C over fixed bytes: work that lays out Python objects differs by 1-4 % from process to process.
    It is the gate's own yardstick: ``calibrate`` counts false alarms and found slowdowns on it.
    """
    text = b"".join(b"%d " % (number * number) for number in range(1100))
    long = text + text
    classes: Mapping[str, Callable[[], object]] = {
        "hash": lambda: hashlib.sha256(text).digest(),
        "checksum": lambda: zlib.crc32(long),
        "digest": lambda: hashlib.blake2b(text).digest(),
        "search": lambda: text.count(b"5 6"),
    }
    units = {name: round(UNITS * (1 + request.inject.get(name, 0.0))) for name in classes}

    def sample() -> dict[str, float]:
        fastest = dict.fromkeys(classes, float("inf"))
        for _ in range(BURSTS):
            # Classes take turns, so that a quiet moment of the machine serves all of them.
            for name, work in classes.items():
                fastest[name] = min(fastest[name], _burst(work, units[name]))
        times = {f"cpu/{name}": seconds for name, seconds in fastest.items()}
        return {f"cpu/{WALL}": sum(times.values()), **times}

    return sample


def prefill(request: Request) -> Callable[[], dict[str, float]]:
    """A whole prefill at each nt: the untraced wall, then the classes, copy-only time and gaps of a traced one.

    All walls are taken before the first trace, as in a window: on a GPU a pass is slower once kernels were launched one by
    one under the tracer. NotImplementedError where the measured commit has no engine yet: it is then "lacks API", not a
    failure.
    """
    from ..attribution.decompose import decompose
    from ..capture.instrument import instrument_for
    from ..engine import CommitTooOldError, EngineOptions
    from ..models import model_path
    from ..window import prompt
    from .inject import SlowedEngine

    model = Path(request.model) if request.model else model_path()
    try:
        engine = SlowedEngine(model, EngineOptions(**_engine_options(request)), request.inject)
    except CommitTooOldError as error:
        raise NotImplementedError(str(error)) from error
    instrument = instrument_for(engine)
    prompts = {nt: prompt(nt, engine.vocabulary) for nt in request.nt or (DEFAULT_NT,)}
    count = request.warmups + request.samples
    samples: list[dict[str, float]] = [{} for _ in range(count)]
    for nt, tokens in prompts.items():
        if engine.backend == "cuda":
            _wake(engine, tokens)
        for sample in samples:
            sample[f"prefill@{nt}/{WALL}"] = _wall(engine, tokens)
    passes = {nt: instrument.passes(engine, tokens, count) for nt, tokens in prompts.items()}
    for nt, tokens in prompts.items():
        for sample, trace in zip(samples, instrument.named(engine, tokens, passes[nt]), strict=True):
            part = decompose(trace)
            sample |= {f"prefill@{nt}/{one.name}": one.ns / 1e9 for one in part.classes}
            sample[f"prefill@{nt}/copy-only"] = part.copy_ns / 1e9
            sample[f"prefill@{nt}/{GAPS}"] = sum(part.gap_ns.values()) / 1e9
    taken = iter(samples)
    return lambda: {name: seconds for name, seconds in next(taken).items() if seconds > 0}


def _wake(engine: MeasuredEngine, tokens: Sequence[int]) -> None:
    """Pass after pass, until kernels are loaded, graphs captured, and the GPU's clocks where such work holds them."""
    for _ in range(WAKING_PASSES):
        engine.prefill(tokens)
    spent = 0.0
    while spent < WAKING_S:
        spent += engine.prefill(tokens) / 1e9


def _wall(engine: MeasuredEngine, tokens: Sequence[int]) -> float:
    """Seconds of an untraced pass: the median of as many as fit in ``WALL_S``, each after a rest as in a window.

    Without the rest an H200 at its power cap clocks down from pass to pass: 83 ms instead of 73 for 3325 tokens.
    """
    from ..interleave import SETTLE_S

    found: list[float] = []
    while sum(found) < WALL_S:
        time.sleep(SETTLE_S)
        found.append(engine.prefill(tokens) / 1e9)
    return median(found)


def _engine_options(request: Request) -> dict[str, Any]:
    """Of ``--set``: backend and ubatch. Gates come from MINFER_GATES, which the engine reads itself."""
    unknown = sorted(set(request.parameters) - {"backend", "ubatch"})
    if unknown:
        raise ValueError(f"--set {unknown[0]}: the prefill knows backend and ubatch; set gates with MINFER_GATES")
    options: dict[str, Any] = dict(request.parameters)
    if "ubatch" in options:
        options["ubatch"] = int(options["ubatch"])
    return options


def _burst(work: Callable[[], object], units: int) -> float:
    began = time.process_time_ns()
    for _ in range(units):
        work()
    return (time.process_time_ns() - began) / 1e9
