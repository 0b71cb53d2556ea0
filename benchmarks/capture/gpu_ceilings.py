"""The GPU's ceilings: copy bandwidth and matrix rates at the engine's largest product, through CuPy and NVIDIA's cuBLASLt.

Each rate is the median of repetitions, one repetition several products between two CUDA events, on random data: zeros
draw less power and run faster.
"""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..attribution.record import Ceiling

GEMM_SHAPE = (3328, 18944, 3584)
"""m, n, k: ffn_gate of the 7B shape at 3325 tokens, rounded up to what int8 and fp8 units take."""
COPY_BYTES = 4 << 30
REPETITIONS = 7
_PRODUCTS = 4


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of product in cuBLASLt's numbers (cudaDataType_t, cublasComputeType_t)."""

    name: str
    operand: int
    operand_bytes: int
    result: int
    result_bytes: int
    compute: int
    scale: int


_KINDS = (
    _Kind("f16 GEMM", 2, 2, 2, 2, 68, 0),
    _Kind("int8 GEMM", 3, 1, 10, 4, 72, 10),
    _Kind("fp8 GEMM", 28, 1, 14, 2, 68, 0),
)
_TRANSPOSE_A = 3  # CUBLASLT_MATMUL_DESC_TRANSA
_WORKSPACE = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
_WORKSPACE_BYTES = 32 << 20


def measure() -> tuple[Ceiling, ...]:
    """The ceilings that this device has; a kind that its units or its cuBLASLt lack is left out."""
    import cupy

    found = [_copy(cupy)]
    library = _cublas_lt()
    for kind in _KINDS if library is not None else ():
        rates = _gemm_rates(cupy, library, kind)
        if rates:
            found.append(Ceiling(kind.name, "TFLOP/s", statistics.median(rates), rates, GEMM_SHAPE))
    cupy.get_default_memory_pool().free_all_blocks()
    return tuple(found)


def rates_of(milliseconds: list[float], amount: float) -> tuple[float, ...]:
    """``amount`` of work in each of these times, in units of 1e12 a second."""
    return tuple(amount / time / 1e9 for time in milliseconds)


def _timed(cupy: Any, work: Callable[[], None]) -> list[float]:
    """Milliseconds of each repetition after one to warm up."""
    times = []
    for _ in range(REPETITIONS + 1):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(begin, end)))
    return times[1:]


def _copy(cupy: Any) -> Ceiling:
    free, _ = cupy.cuda.runtime.memGetInfo()
    size = min(COPY_BYTES, int(free) // 4)
    source, target = cupy.ones(size, cupy.uint8), cupy.zeros(size, cupy.uint8)
    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream()
    times = _timed(cupy, lambda: runtime.memcpyAsync(target.data.ptr, source.data.ptr, size, 3, stream.ptr))
    rates = rates_of(times, 2 * size)
    return Ceiling("copy", "TB/s", statistics.median(rates), rates, (size,))


def _cublas_lt() -> Any | None:
    for name in ("libcublasLt.so.13", "libcublasLt.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _gemm_rates(cupy: Any, library: Any, kind: _Kind) -> tuple[float, ...]:
    """Rates of result [m, n] = x [m, k] w [n, k]^T; empty where cuBLASLt says that it cannot."""
    m, n, k = GEMM_SHAPE
    x, w = (_operand(cupy, kind, rows * k) for rows in (m, n))
    out = cupy.empty(m * n * kind.result_bytes, cupy.uint8)
    workspace = cupy.empty(_WORKSPACE_BYTES, cupy.uint8)
    handle, description, preference = (ctypes.c_void_p() for _ in range(3))
    layouts = [ctypes.c_void_p() for _ in range(3)]
    algorithm, found = (ctypes.c_char * 512)(), ctypes.c_int()
    transposed, space = ctypes.c_int(1), ctypes.c_size_t(_WORKSPACE_BYTES)
    # Integer products scale by int32, the others by float32.
    number = ctypes.c_int if kind.scale == 10 else ctypes.c_float
    alpha, beta = number(1), number(0)
    setup = [
        library.cublasLtCreate(ctypes.byref(handle)),
        library.cublasLtMatmulDescCreate(ctypes.byref(description), kind.compute, kind.scale),
        library.cublasLtMatmulDescSetAttribute(description, _TRANSPOSE_A, ctypes.byref(transposed), ctypes.c_size_t(4)),
    ]
    for layout, (dtype, rows, columns) in zip(
        layouts, ((kind.operand, k, n), (kind.operand, k, m), (kind.result, n, m)), strict=True
    ):
        shape = (ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows))
        setup.append(library.cublasLtMatrixLayoutCreate(ctypes.byref(layout), dtype, *shape))
    setup += [
        library.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)),
        library.cublasLtMatmulPreferenceSetAttribute(preference, _WORKSPACE, ctypes.byref(space), ctypes.c_size_t(8)),
    ]
    if not any(setup):
        setup.append(
            library.cublasLtMatmulAlgoGetHeuristic(
                handle, description, *layouts, layouts[2], preference, 1, algorithm, ctypes.byref(found)
            )
        )
    if any(setup) or found.value == 0:
        return ()

    def products() -> None:
        for _ in range(_PRODUCTS):
            status = library.cublasLtMatmul(
                handle, description, ctypes.byref(alpha), ctypes.c_void_p(w.data.ptr), layouts[0],
                ctypes.c_void_p(x.data.ptr), layouts[1], ctypes.byref(beta), ctypes.c_void_p(out.data.ptr), layouts[2],
                ctypes.c_void_p(out.data.ptr), layouts[2], algorithm, ctypes.c_void_p(workspace.data.ptr), space,
                ctypes.c_void_p(cupy.cuda.get_current_stream().ptr),
            )  # fmt: skip
            if status:
                raise RuntimeError(f"cublasLtMatmul of {kind.name} at {GEMM_SHAPE} returned {status}")

    try:
        return rates_of(_timed(cupy, products), 2 * m * n * k * _PRODUCTS)
    finally:
        library.cublasLtDestroy(handle)


def _operand(cupy: Any, kind: _Kind, count: int) -> Any:
    """Random numbers of the kind's operand type."""
    if kind.operand_bytes == 2:
        return cupy.random.standard_normal(count, dtype=cupy.float32).astype(cupy.float16)
    values = cupy.random.randint(0, 256, count, dtype=cupy.uint8)
    # e4m3 has no infinity; the two codes of not-a-number become finite.
    return cupy.where((values & 0x7F) == 0x7F, values - 1, values) if kind.operand == 28 else values
