"""What runs under ``nsys profile``: the passes that a parent asked for, each inside a named range (NVTX).

``request`` is a JSON object: ``model``, ``tokens`` (ids), ``passes``, and ``engine`` (EngineOptions) or ``peer``
(PeerOptions). Ranges: ``window labelled`` around a pass whose operations are ranges ``op 0``, ``op 1``, ...; then
``window pass 0``, ``window pass 1``, ... around the passes that are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..engine import EngineOptions, MeasuredEngine
from ..interleave import SETTLE_S
from ..peers.llama_cpp import LlamaCpp, PeerOptions
from .instrument import observing

WARM_UPS = 3
"""Passes before the first that counts: they load, compile and capture."""
LABELLED, PASS, OPERATION = "window labelled", "window pass", "op"


class RangeObserver:
    """Makes a range of each operation, numbered in order."""

    def __init__(self, push: Callable[[str], object], pop: Callable[[], object]) -> None:
        self._push, self._pop = push, pop
        self._count = 0

    def begin(self, operation: Any) -> None:
        self._push(f"{OPERATION} {self._count}")
        self._count += 1

    def end(self, operation: Any) -> None:
        self._pop()


def run(request: dict[str, Any], push: Callable[[str], object], pop: Callable[[], object]) -> None:
    """Run everything in ``request``; ``push`` opens a range, ``pop`` closes it."""
    tokens, model = request["tokens"], Path(request["model"])
    if "peer" in request:
        with LlamaCpp(model, PeerOptions(**request["peer"])) as peer:
            _passes(lambda: peer.prefill(tokens), request["passes"], push, pop)
        return
    engine = MeasuredEngine(model, EngineOptions(**request["engine"]))
    for _ in range(WARM_UPS):
        engine.prefill(tokens)
    with observing(engine, RangeObserver(push, pop)):
        push(LABELLED)
        engine.prefill(tokens)
        pop()
    _passes(lambda: engine.prefill(tokens), request["passes"], push, pop)


def _passes(prefill: Callable[[], object], count: int, push: Callable[[str], object], pop: Callable[[], object]) -> None:
    for _ in range(WARM_UPS):
        prefill()
    for index in range(count):
        time.sleep(SETTLE_S)
        push(f"{PASS} {index}")
        prefill()
        pop()


def main(request: dict[str, Any]) -> None:
    """Run a request with CuPy's ranges."""
    from cupy.cuda import nvtx

    run(request, nvtx.RangePush, nvtx.RangePop)
