"""Attention in each of its variants against a float64 softmax, with a past, windows, soft caps and grouped heads."""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends.cuda import attention_hopper, launch
from tests.gpu.support import LENGTHS, distance


def reference(cupy, q, keys, values, past, scale, window, softcap):
    """[m, heads * v_width], computed on the device in float64, one head at a time."""
    m, heads, _ = q.shape
    end = past + m
    behind = cupy.arange(past, end)[:, None] - cupy.arange(end)[None, :]
    hidden = (behind < 0) if window is None else (behind < 0) | (behind >= window)
    out = []
    for head in range(heads):
        kv = head // (heads // keys.shape[1])
        wide = [cupy.asarray(part).astype(cupy.float64) for part in (q[:, head], keys[:end, kv], values[:end, kv])]
        scores = wide[0] @ wide[1].T * scale
        if softcap is not None:
            scores = softcap * cupy.tanh(scores / softcap)
        scores[hidden] = -cupy.inf
        scores = cupy.exp(scores - scores.max(-1, keepdims=True))
        out.append(cupy.asnumpy(scores / scores.sum(-1, keepdims=True) @ wide[2]))
    return np.stack(out, 1).reshape(m, -1)


FLASH = (64, 128, 256, 512)
"""Widths that have tiles."""
CASES = [
    # width, value width, window, soft cap, past
    (64, 64, None, None, 0), (128, 128, None, None, 0), (256, 256, None, None, 0),
    (64, 64, 100, None, 37), (128, 128, 33, None, 300), (256, 256, 512, None, 1),
    (64, 64, None, 5.0, 3), (128, 128, 70, 5.0, 64), (256, 256, None, 5.0, 129),
    (16, 24, 5, 2.0, 3), (80, 80, None, None, 11),
    (512, 512, None, None, 0), (512, 512, 40, 5.0, 70), (320, 320, None, None, 9), (576, 512, 90, None, 33),
    (128, 600, None, 3.0, 64),
]  # fmt: skip


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize(("width", "v_width", "window", "softcap", "past"), CASES)
@pytest.mark.parametrize("variant", ["fa", "fa3", "plain", "few"])
def test_attention(gpu, variant, m, width, v_width, window, softcap, past):
    tiled = width == v_width and width in FLASH
    if (variant == "few" and m > 7) or (variant == "plain" and m > 512) or (variant == "fa" and not tiled):
        pytest.skip("this variant is not for this shape")
    if variant == "fa3" and not attention_hopper.can(gpu.device, width, v_width, softcap):
        pytest.skip("this variant is not for this shape or this GPU")
    random = np.random.default_rng(m + width)
    heads, kv_heads = 6, 2
    q = random.standard_normal((m, heads, width)).astype(np.float16)
    keys = random.standard_normal((past + m + 5, kv_heads, width)).astype(np.float16)
    values = random.standard_normal((past + m + 5, kv_heads, v_width)).astype(np.float16)
    # What lies beyond the last position must not matter.
    keys[past + m :] = np.nan
    values[past + m :] = np.nan
    scale = 2.0 / np.sqrt(width)
    given = [gpu.put(part) for part in (q, keys, values)]
    out, state = gpu.poisoned((m, heads * v_width), "f16"), gpu.put(np.array([past], np.int32))
    if variant == "few":
        partial = gpu.poisoned((m, heads, launch.splits_for(past + m), v_width + 2), "f32")
        launch.attention_few(gpu.device, *given, partial, out, state, scale, window, softcap)
    elif variant == "fa3":
        attention_hopper.attention(gpu.device, *given, out, state, scale, window)
    else:
        launch.attention(gpu.device, *given, out, state, scale, window, softcap, variant == "fa")
    expected = reference(gpu.device.cupy, q, keys, values, past, scale, window, softcap)
    assert distance(gpu.get(out), expected) < 1.5e-3
