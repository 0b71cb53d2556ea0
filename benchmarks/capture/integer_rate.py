"""The CPU's rate of 16-bit integer products, which carry exact weights: what kernels on integers can reach at most.

No library at hand has such a product of matrices, so it is the rate of the instruction itself, on all cores at once.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..attribution.record import Ceiling
from .machine import usable_cores

_ROUNDS = 2_000_000
"""Of 384 products: some 10 ms."""
_REPETITIONS = 7
_CPU = "-march=native"
_LONGEST_COMPILATION_S = 30


def integer_ceiling() -> Ceiling | None:
    """TOP/s, two operations a multiply-accumulate; None without a C compiler that works, or where the engine multiplies no
    integers."""
    with tempfile.TemporaryDirectory() as scratch:
        library = _compiled(Path(scratch))
        if library is None or library.integer_products(1) == 0:
            return None
        cores = usable_cores()
        with ThreadPoolExecutor(cores) as pool:
            rates = [_rate(library, pool, cores) for _ in range(_REPETITIONS + 1)][1:]
    return Ceiling("int16 GEMM", "TOP/s", sorted(rates)[len(rates) // 2], tuple(rates))


def _compiled(folder: Path) -> ctypes.CDLL | None:
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    made, source = folder / "integer_rate.so", Path(__file__).with_suffix(".c")
    command = [compiler, "-O2", _CPU, "-shared", "-fPIC", "-o", str(made), str(source)]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_LONGEST_COMPILATION_S)
        library = ctypes.CDLL(str(made))
    except (OSError, subprocess.SubprocessError):
        return None
    library.integer_products.restype = ctypes.c_longlong
    library.integer_products.argtypes = (ctypes.c_long,)
    return library


def _rate(library: ctypes.CDLL, pool: ThreadPoolExecutor, cores: int) -> float:
    """A call lets go of Python's lock, so that the cores work at the same time."""
    began = time.perf_counter_ns()
    done: int = sum(pool.map(library.integer_products, [_ROUNDS] * cores))
    return 2 * done / (time.perf_counter_ns() - began) / 1000
