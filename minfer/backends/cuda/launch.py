"""One typed launcher for each operation in ``kernels/``: checks what it is given, then launches."""

from __future__ import annotations

from ...kernels import KernelError
from .arrays import DeviceArray
from .device import Device

DECODED = (
    "f32",
    "f16",
    "bf16",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "q2_K",
    "q3_K",
    "q4_K",
    "q5_K",
    "q6_K",
    "iq4_nl",
    "iq4_xs",
)
"""Types that kernels/blocks.cuh decodes."""
FEW_ROWS = 4
"""Up to so many tokens are multiplied by the matrix-vector kernel: it reads the weights once a token."""
_SPAN = 64
"""Cache positions that one block of the decode attention takes."""
_FA_TILES = {
    ("64", False): (128, 64),
    ("64", True): (128, 64),
    ("128", False): (128, 64),
    ("128", True): (64, 64),
    ("256", False): (64, 32),
    ("256", True): (64, 32),
}
"""Queries and keys of a tile, by head width and soft cap, as kernels/attention.cu instantiates them."""
_MMV_BLOCKS = 4
"""Thread blocks of the q4_K matrix-vector kernel that a multiprocessor holds."""
_TWO_STAGES = ("sm_80", "sm_90a")
_BT_STAGE, _BT_SCALES = 128 * 256 + 128 * 144 + 8 * 128 * 8, 8 * 128 * 8
"""Shared memory of kernels/bt.cu: a stage of activations, weights and activation scales; the weights' scales."""


def expect(what: str, array: DeviceArray, dtypes: str, shape: tuple[int | None, ...], multiple: int = 1) -> None:
    """Raise KernelError unless ``array`` has one of the types, the shape (None: any), and rows of whole ``multiple``s."""
    fits = len(array.shape) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype not in dtypes.split() or array.shape[-1] % multiple or array.pointer % 16:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise KernelError(
            f"{what} is {array.dtype} {array.shape} at address {array.pointer:#x}, "
            f"expected {dtypes.replace(' ', ' or ')} ({wanted}), "
            f"rows of a multiple of {multiple} elements, aligned to 16 bytes"
        )


def _blocks(count: int, threads: int) -> tuple[int, int, int]:
    return -(-count // threads), 1, 1


def set_position(device: Device, state: DeviceArray, position: int) -> None:
    device.kernel("state", "fill_position", "Pi", 32)(device.stream_handle, (1, 1, 1), state.pointer, position)


def embedding(device: Device, kind: str, table: int, tokens: DeviceArray, out: DeviceArray, scale: float) -> None:
    """Rows of a table stored as ``kind``, times ``scale``, into f32 ``out`` [m, width]."""
    expect("embedding's result", out, "f32", (tokens.shape[0], None), 8)
    kernel = device.kernel("embedding", f"embedding_{kind}", "PPPif", 256)
    kernel(device.stream_handle, (out.shape[0], 1, 1), table, tokens.pointer, out.pointer, out.shape[1], scale)


def dequantise(device: Device, kind: str, weights: int, out: DeviceArray) -> None:
    """All weights stored as ``kind`` at ``weights``, to f16 ``out``."""
    if out.size % 8:
        raise KernelError(f"dequantise: {out.shape} is {out.size} weights, expected a multiple of 8")
    grid = (min(-(-out.size // 2048), 1 << 20), 1, 1)
    device.kernel("dequantise", f"dequantise_{kind}", "PPq", 256)(device.stream_handle, grid, weights, out.pointer, out.size)


def mmv(
    device: Device, kind: str, weights: int, x: DeviceArray, out: DeviceArray, bias: DeviceArray | None = None
) -> None:
    """x [m, k] times the transpose of a matrix [n, k] stored as ``kind``, plus ``bias`` [n], into ``out`` [m, n]."""
    m, n = out.shape
    expect("the matrix-vector product's input", x, "f16", (m, None), 8)
    if bias is not None:
        expect("a bias", bias, "f32", (n,))
    kernel = device.kernel("mmv", f"mmv_{kind}", "PPPPiifi", 128)
    groups = -(-n // 4)
    kernel(
        device.stream_handle,
        (min(groups, _MMV_BLOCKS * device.multiprocessors) if kind == "q4_K" else groups, m, 1),
        weights,
        x.pointer,
        0 if bias is None else bias.pointer,
        out.pointer,
        n,
        x.shape[1],
        x.scale,
        int(out.dtype == "f32"),
    )


def rms_norm(device: Device, x: DeviceArray, weight: DeviceArray, out: DeviceArray, epsilon: float) -> None:
    """Norm over the last axis of x [..., width], f32 or f16, into f16 ``out``."""
    width = x.shape[-1]
    expect("a norm's weight", weight, "f32", (width,), 4)
    expect("a norm's result", out, "f16", x.shape)
    if len(x.shape) == 3:
        expect("a head norm's input", x, "f16", x.shape)
        rows = x.shape[0] * x.shape[1]
        kernel = device.kernel("rms_norm", "rms_norm_heads_f16", "PPPiif", 256)
        kernel(device.stream_handle, _blocks(rows, 8), x.pointer, weight.pointer, out.pointer, rows, width, epsilon)
        return
    kernel = device.kernel("rms_norm", f"rms_norm_{x.dtype}", "PPPif", 256)
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
    kernel = device.kernel("rms_norm", "rms_norm_residual", "PPPPif", 256)
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
        _blocks(m * heads * units, 256),
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


def kv_write(
    device: Device, k: DeviceArray, v: DeviceArray, keys: DeviceArray, values: DeviceArray, state: DeviceArray
) -> None:
    """k and v [m, kv_heads, width] into a layer's keys and values [positions, kv_heads, width]; v with its bias."""
    m, k_width, v_width = k.shape[0], k.shape[1] * k.shape[2], v.shape[1] * v.shape[2]
    expect("new keys", k, "f16", (m, None, None), 8)
    expect("new values", v, "f16", (m, None, None), 8)
    kernel = device.kernel("kv_write", "kv_write", "PPPPPPiiiii", 256)
    kernel(
        device.stream_handle,
        _blocks(m * (k_width + v_width) // 8, 256),
        k.pointer,
        v.pointer,
        0 if v.bias is None else v.bias.pointer,
        keys.pointer,
        values.pointer,
        state.pointer,
        m,
        k_width,
        v_width,
        k_width,
        v_width,
    )


def splits_for(end: int) -> int:
    """Blocks a head for the decode attention over ``end`` positions: a power of two, so that graphs can be reused."""
    return 1 << (-(-end // _SPAN) - 1).bit_length()


def attention(
    device: Device,
    q: DeviceArray,
    keys: DeviceArray,
    values: DeviceArray,
    out: DeviceArray,
    state: DeviceArray,
    scale: float,
    window: int | None,
    softcap: float | None,
    flash: bool,
) -> None:
    """Causal attention of q [m, heads, width] into out [m, heads * width]; ``flash`` where its widths allow."""
    m, heads, width = q.shape
    kv_heads, v_width = values.shape[1:]
    expect("queries", q, "f16", (m, heads, width), 2)
    expect("cached keys", keys, "f16", (None, kv_heads, width))
    expect("cached values", values, "f16", (None, kv_heads, v_width))
    if max(width, v_width) > 256:
        raise KernelError(f"attention: heads of {max(width, v_width)} dimensions, expected up to 256; use backend numpy")
    tiles = _FA_TILES.get((str(width), softcap is not None)) if flash and width == v_width else None
    arguments = (
        q.pointer,
        keys.pointer,
        values.pointer,
        out.pointer,
        state.pointer,
        m,
        heads,
        kv_heads,
        width,
        v_width,
        heads * width,
        window or 0,
        scale,
        softcap or 0.0,
    )
    if tiles is None:
        device.kernel("attention", "attention_plain", "PPPPPiiiiiiiff", 128)(
            device.stream_handle, _blocks(m * heads, 4), *arguments
        )
        return
    rows, columns = tiles
    name = f"attention_fa_{width}" + ("_cap" if softcap is not None else "")
    kernel = device.kernel("attention", name, "PPPPPiiiiiiiff", 128, (rows + 4 * columns) * width * 2)
    kernel(device.stream_handle, (-(-m // rows), heads, 1), *arguments)


def attention_few(
    device: Device,
    q: DeviceArray,
    keys: DeviceArray,
    values: DeviceArray,
    partial: DeviceArray,
    out: DeviceArray,
    state: DeviceArray,
    scale: float,
    window: int | None,
    softcap: float | None,
) -> None:
    """As ``attention``, for few queries: ``partial`` f32 [m, heads, splits, width + 2] says over how many blocks."""
    m, heads, width = q.shape
    splits, v_width = partial.shape[2], values.shape[2]
    expect("queries", q, "f16", (m, heads, width), 2)
    expect("partial attention", partial, "f32", (m, heads, splits, v_width + 2))
    decode = device.kernel("attention", "attention_decode", "PPPPPiiiiiiffi", 128)
    decode(
        device.stream_handle,
        (heads, splits, m),
        q.pointer,
        keys.pointer,
        values.pointer,
        partial.pointer,
        state.pointer,
        heads,
        keys.shape[1],
        width,
        v_width,
        heads * width,
        window or 0,
        scale,
        softcap or 0.0,
        _SPAN,
    )
    combine = device.kernel("attention", "attention_combine", "PPiii", 128)
    combine(device.stream_handle, (heads, m, 1), partial.pointer, out.pointer, heads, v_width, splits)


def gated(device: Device, gate: DeviceArray, up: DeviceArray, activation: str, scale: float, overflow: DeviceArray) -> None:
    """gate [m, width] becomes activation(gate) * up * scale."""
    m, width = gate.shape
    expect("the gate", gate, "f16", (m, width), 8)
    expect("the gated values", up, "f16", (m, width), 8)
    kernel = device.kernel("gated_activation", f"{activation}_mul", "PPPiiifP", 256)
    kernel(
        device.stream_handle,
        _blocks(m * width // 8, 256),
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
        device.stream_handle, _blocks(x.size // 4, 256), x.pointer, y.pointer, x.size
    )


def add_bias(device: Device, x: DeviceArray, bias: DeviceArray) -> None:
    """x f16 [m, width] += bias f32 [width]."""
    m, width = x.shape
    expect("a product", x, "f16", (m, width), 2)
    expect("a bias", bias, "f32", (width,))
    device.kernel("add", "add_bias", "PPiii", 256)(
        device.stream_handle, _blocks(m * width // 2, 256), x.pointer, bias.pointer, m, width, width
    )


def soft_cap(device: Device, x: DeviceArray, cap: float) -> None:
    """x f32 = cap * tanh(x / cap)."""
    expect("capped scores", x, "f32", x.shape)
    device.kernel("add", "softcap", "Pfq", 256)(device.stream_handle, _blocks(x.size, 256), x.pointer, cap, x.size)


def move_rows(device: Device, way: str, x: DeviceArray, rows: DeviceArray, out: DeviceArray) -> None:
    """``way`` "gather": out[i] = x[rows[i]]; "scatter": out[rows[i]] = x[i]; f16 rows of a common width."""
    width = x.shape[-1]
    expect(f"the rows to {way}", x, "f16", (None, width), 8)
    kernel = device.kernel("experts", f"{way}_rows", "PPPii", 256)
    count = rows.shape[0]
    kernel(device.stream_handle, _blocks(count * width // 8, 256), x.pointer, rows.pointer, out.pointer, count, width)


def combine(device: Device, y: DeviceArray, weights: DeviceArray, out: DeviceArray) -> None:
    """Weighted sum of y [m, used, width] over used, into out [m, width]."""
    m, used, width = y.shape
    expect("the experts' results", y, "f16", (m, used, width), 8)
    expect("the router's weights", weights, "f32", (m, used))
    kernel = device.kernel("experts", "moe_combine", "PPPiii", 256)
    kernel(device.stream_handle, _blocks(m * width // 8, 256), y.pointer, weights.pointer, out.pointer, m, used, width)


def quantise(device: Device, x: DeviceArray, q: DeviceArray, scales: DeviceArray) -> None:
    """x f16 [m, k] to q8_1: bytes [m, k], and (scale, scaled sum) f32 [m, k / 32, 2]."""
    m, k = x.shape
    expect("the activations to quantise", x, "f16", (m, None), 32)
    expect("quantised activations", q, "u8", (m, k))
    expect("scales of activations", scales, "f32", (m, k // 32, 2))
    kernel = device.kernel("quantise", "quantise_q8_1", "PPPii", 256)
    kernel(device.stream_handle, _blocks(m * k // 8, 256), x.pointer, q.pointer, scales.pointer, m, k)


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
    kernel(device.stream_handle, _blocks(padded * k // 8, 256), x.pointer, q.pointer, scales.pointer, m, k, padded)


def bt(device: Device, weights: int, q: DeviceArray, scales: DeviceArray, out: DeviceArray, scale: float) -> None:
    """Transposed activations [padded, k] times the transpose of a q4_K matrix [n, k], times ``scale``, into out [m, n]."""
    m, n = out.shape
    padded, k = q.shape
    expect("the product's quantised input", q, "u8", (-(-m // 128) * 128, None), 256)
    expect("a matrix product's result", out, "f16 f32", (m, n), 2)
    stages = 2 if device.target in _TWO_STAGES else 1
    kernel = device.kernel("bt", "gemm_q4_K_bt", "PPPPiiiifi", 256, stages * _BT_STAGE + _BT_SCALES)
    pointers = weights, q.pointer, scales.pointer, out.pointer
    grid = (-(-n // 128), padded // 128, 1)
    kernel(device.stream_handle, grid, *pointers, m, n, k, padded, scale, int(out.dtype == "f32"))
