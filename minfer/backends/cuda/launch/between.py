"""What stands between products: norms, rotary embedding, gated activation, sums."""

from __future__ import annotations

from ..arrays import DeviceArray
from ..device import Device
from .checks import blocks, expect
from .weights import FEW_ROWS


def _row_threads(rows: int) -> int:
    """Threads a row: with few rows the reads of one should not wait for each other."""
    return 1024 if rows <= FEW_ROWS else 256


def rms_norm(device: Device, x: DeviceArray, weight: DeviceArray, out: DeviceArray, epsilon: float) -> None:
    """Norm over the last axis of x [..., width], f32 or f16, into f16 ``out``."""
    width = x.shape[-1]
    expect("a norm's weight", weight, "f32", (width,), 4)
    expect("a norm's result", out, "f16", x.shape)
    if len(x.shape) == 3:
        expect("a head norm's input", x, "f16", x.shape)
        rows = x.shape[0] * x.shape[1]
        kernel = device.kernel("rms_norm", "rms_norm_heads_f16", "PPPiif", 256)
        kernel(device.stream_handle, blocks(rows, 8), x.pointer, weight.pointer, out.pointer, rows, width, epsilon)
        return
    threads = _row_threads(x.shape[0]) if x.dtype == "f32" else 256
    kernel = device.kernel("rms_norm", f"rms_norm_{x.dtype}", "PPPif", threads)
    kernel(device.stream_handle, (x.shape[0], 1, 1), x.pointer, weight.pointer, out.pointer, width, epsilon)


def rms_norm_residual(
    device: Device, x: DeviceArray, y: DeviceArray, weight: DeviceArray, out: DeviceArray, epsilon: float
) -> None:
    """x f32 [m, width] += y f16, then its norm into f16 ``out``."""
    width = x.shape[-1]
    expect("a residual", x, "f32", y.shape, 4)
    expect("what is added to a residual", y, "f16", x.shape, 4)
    expect("a norm's weight", weight, "f32", (width,), 4)
    expect("a norm's result", out, "f16", x.shape)
    kernel = device.kernel("rms_norm", "rms_norm_residual", "PPPPif", _row_threads(x.shape[0]))
    pointers = x.pointer, y.pointer, weight.pointer, out.pointer
    kernel(device.stream_handle, (x.shape[0], 1, 1), *pointers, width, epsilon)


def rope(
    device: Device,
    x: DeviceArray,
    turns: DeviceArray,
    state: DeviceArray,
    interleaved: bool,
    bias: DeviceArray | None = None,
) -> None:
    """Add ``bias`` [heads * width] to x f16 [m, heads, width] and turn it by ``turns`` [positions, pairs, 2], in place."""
    m, heads, width = x.shape
    pairs = turns.shape[1]
    expect("rope's input", x, "f16", (m, heads, width), 2)
    expect("rope's table", turns, "f32", (None, None, 2))
    if bias is not None:
        expect("a bias", bias, "f32", (heads * width,))
    together = 4 if interleaved else 8
    fits = pairs % together == 0 and (width - 2 * pairs) % 8 == 0 and width % 8 == 0
    units = pairs // together + (width - 2 * pairs) // 8 if fits else width // 2
    kernel = device.kernel("rope", "rope" if fits else "rope_pairs", "PPPPiiiiii", 256)
    kernel(
        device.stream_handle,
        blocks(m * heads * units, 256),
        x.pointer,
        0 if bias is None else bias.pointer,
        turns.pointer,
        state.pointer,
        m,
        heads,
        width,
        heads * width,
        pairs,
        int(interleaved),
    )


def gated(device: Device, gate: DeviceArray, up: DeviceArray, activation: str, scale: float, overflow: DeviceArray) -> None:
    """gate [m, width] becomes activation(gate) * up * scale."""
    m, width = gate.shape
    expect("the gate", gate, "f16", (m, width), 8)
    expect("the gated values", up, "f16", (m, width), 8)
    kernel = device.kernel("gated_activation", f"{activation}_mul", "PPPiiifP", 256)
    kernel(
        device.stream_handle,
        blocks(m * width // 8, 256),
        gate.pointer,
        up.pointer,
        gate.pointer,
        m,
        width,
        width,
        scale,
        overflow.pointer,
    )


def add_residual(device: Device, x: DeviceArray, y: DeviceArray) -> None:
    """x f32 += y f16."""
    expect("a residual", x, "f32", y.shape, 4)
    expect("what is added to a residual", y, "f16", x.shape, 4)
    device.kernel("add", "add_residual", "PPq", 256)(
        device.stream_handle, blocks(x.size // 4, 256), x.pointer, y.pointer, x.size
    )


def add_bias(device: Device, x: DeviceArray, bias: DeviceArray) -> None:
    """x f16 [m, width] += bias f32 [width]."""
    m, width = x.shape
    expect("a product", x, "f16", (m, width), 2)
    expect("a bias", bias, "f32", (width,))
    device.kernel("add", "add_bias", "PPiii", 256)(
        device.stream_handle, blocks(m * width // 2, 256), x.pointer, bias.pointer, m, width, width
    )


def soft_cap(device: Device, x: DeviceArray, cap: float) -> None:
    """x f32 = cap * tanh(x / cap)."""
    expect("capped scores", x, "f32", x.shape)
    device.kernel("add", "softcap", "Pfq", 256)(device.stream_handle, blocks(x.size, 256), x.pointer, cap, x.size)
