"""Products on the int8 matrix units, and the activations that they take."""

from __future__ import annotations

from ..arrays import DeviceArray
from ..device import Device
from .checks import LARGE_SHARED, blocks, expect

_BT_STAGE, _BT_SCALES = 128 * 256 + 128 * 144 + 8 * 128 * 8, 8 * 128 * 8
"""Shared memory of kernels/bt.cu: a stage of activations, weights and activation scales; the weights' scales."""


def quantise(device: Device, x: DeviceArray, q: DeviceArray, scales: DeviceArray) -> None:
    """x f16 [m, k] to q8_1: bytes [m, k], and (scale, scaled sum) f32 [m, k / 32, 2]."""
    m, k = x.shape
    expect("the activations to quantise", x, "f16", (m, None), 32)
    expect("quantised activations", q, "u8", (m, k))
    expect("scales of activations", scales, "f32", (m, k // 32, 2))
    kernel = device.kernel("quantise", "quantise_q8_1", "PPPii", 256)
    kernel(device.stream_handle, blocks(m * k // 8, 256), x.pointer, q.pointer, scales.pointer, m, k)


def mmq(
    device: Device, kind: str, weights: int, q: DeviceArray, scales: DeviceArray, out: DeviceArray, scale: float
) -> None:
    """Quantised activations [m, k] times the transpose of a matrix [n, k] stored as ``kind``, times ``scale``."""
    m, k = q.shape
    expect("the product's quantised input", q, "u8", (m, None), 32)
    expect("a matrix product's result", out, "f16 f32", (m, None), 2)
    kernel = device.kernel("mmq", f"mmq_{kind}", "PPPPiiifi", 256)
    n = out.shape[1]
    grid = (-(-n // 128), -(-m // 128), 1)
    pointers = weights, q.pointer, scales.pointer, out.pointer
    kernel(device.stream_handle, grid, *pointers, m, n, k, scale, int(out.dtype == "f32"))


def quantise_bt(device: Device, x: DeviceArray, q: DeviceArray, scales: DeviceArray) -> None:
    """x f16 [m, k] to q8_1 in the order that ``bt`` reads: bytes [padded, k], and pairs f32 [k / 32, padded, 2]."""
    m, k = x.shape
    padded = q.shape[0]
    expect("the activations to quantise", x, "f16", (m, None), 32)
    expect("transposed activations", q, "u8", (-(-m // 128) * 128, k))
    expect("scales of transposed activations", scales, "f32", (k // 32, padded, 2))
    kernel = device.kernel("quantise", "quantise_q8_1_bt", "PPPiii", 256)
    kernel(device.stream_handle, blocks(padded * k // 8, 256), x.pointer, q.pointer, scales.pointer, m, k, padded)


def bt(device: Device, weights: int, q: DeviceArray, scales: DeviceArray, out: DeviceArray, scale: float) -> None:
    """Transposed activations [padded, k] times the transpose of a q4_K matrix [n, k], times ``scale``, into out [m, n]."""
    m, n = out.shape
    padded, k = q.shape
    expect("the product's quantised input", q, "u8", (-(-m // 128) * 128, None), 256)
    expect("a matrix product's result", out, "f16 f32", (m, n), 2)
    stages = 2 if device.target in LARGE_SHARED else 1
    kernel = device.kernel("bt", "gemm_q4_K_bt", "PPPPiiiifi", 256, stages * _BT_STAGE + _BT_SCALES)
    pointers = weights, q.pointer, scales.pointer, out.pointer
    grid = (-(-n // 128), padded // 128, 1)
    kernel(device.stream_handle, grid, *pointers, m, n, k, padded, scale, int(out.dtype == "f32"))
