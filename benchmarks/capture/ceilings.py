"""What this device can do at most, measured in the same window: the targets that a class's cost is held against.

Rates are in TFLOP/s (two operations a multiply-accumulate) and TB/s (bytes read plus bytes written), medians of repetitions.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from ..attribution.record import Ceiling
from .integer_rate import integer_ceiling

CPU_GEMM_SHAPE = (512, 2048, 640)
"""m, n, k: a feed-forward product of the default model (Gemma 3 270M) at 512 tokens."""
CPU_COPY_BYTES = 256 << 20
"""Several times the last-level cache of a server core."""
REPETITIONS = 7


def measure(backend: str) -> tuple[Ceiling, ...]:
    """The ceilings of the device that the engine's backend runs on; empty where nobody knows how to measure it."""
    if backend == "cuda":
        from . import gpu_ceilings

        return gpu_ceilings.measure()
    if backend != "numpy":
        return ()
    return tuple(ceiling for ceiling in (_cpu_gemm(), integer_ceiling(), _cpu_copy()) if ceiling is not None)


def _cpu_gemm() -> Ceiling:
    m, n, k = CPU_GEMM_SHAPE
    random = np.random.default_rng(0)
    x = random.standard_normal((m, k), dtype=np.float32)
    w = random.standard_normal((n, k), dtype=np.float32)
    out = np.empty((m, n), np.float32)

    def products() -> None:
        for _ in range(10):
            np.matmul(x, w.T, out=out)

    rates = _rates(products, 10 * 2 * m * n * k)
    return Ceiling("f32 GEMM", "TFLOP/s", statistics.median(rates), rates, CPU_GEMM_SHAPE)


def _cpu_copy() -> Ceiling:
    source = np.ones(CPU_COPY_BYTES, np.uint8)
    target = np.zeros_like(source)
    rates = _rates(lambda: np.copyto(target, source), 2 * CPU_COPY_BYTES)
    return Ceiling("copy", "TB/s", statistics.median(rates), rates, (CPU_COPY_BYTES,))


def _rates(work: Callable[[], None], amount: int) -> tuple[float, ...]:
    """``amount`` per ps of each repetition after one to warm up, that is in units of 1e12 a second."""
    rates = []
    for _ in range(REPETITIONS + 1):
        began = time.perf_counter_ns()
        work()
        rates.append(amount / (time.perf_counter_ns() - began) / 1000)
    return tuple(rates[1:])
