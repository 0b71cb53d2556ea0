"""What the CI gate measures: a whole prefill of the engine, or a fixed piece of CPU work that needs no engine at all."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable, Mapping

from .protocol import WALL, Request

BURSTS = 15
"""Bursts a class and sample; the fastest one counts, because whoever shares the core can only make one slower."""
UNITS = 100
"""Equal units of work a burst; an injected slowdown of 3 % makes 103 of them."""


def deterministic(request: Request) -> Callable[[], dict[str, float]]:
    """Fixed work in four classes, in seconds of this process's own CPU time: what other processes use is not counted.

    Each class is one loop in C over fixed bytes: work that lays out Python objects differs by 1-4 % from process to process.
    It is the gate's own yardstick: ``calibrate`` counts false alarms and found slowdowns on it.
    """
    text = b"".join(b"%d " % (number * number) for number in range(3000))
    long, number = text + text, int.from_bytes(text[:700], "big")
    classes: Mapping[str, Callable[[], object]] = {
        "hash": lambda: hashlib.sha256(text).digest(),
        "checksum": lambda: zlib.crc32(long),
        "multiply": lambda: number * number,
        "search": lambda: text.count(b"61 64"),
    }
    units = {name: round(UNITS * (1 + request.inject.get(name, 0.0))) for name in classes}

    def sample() -> dict[str, float]:
        times = {f"cpu/{name}": min(_burst(work, units[name]) for _ in range(BURSTS)) for name, work in classes.items()}
        return {f"cpu/{WALL}": sum(times.values()), **times}

    return sample


def _burst(work: Callable[[], object], units: int) -> float:
    began = time.process_time_ns()
    for _ in range(units):
        work()
    return (time.process_time_ns() - began) / 1e9
