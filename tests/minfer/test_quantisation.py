"""Every type that ggml's package dequantises, block by block, and the names by which ggml knows them."""

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import _type_traits

from minfer.quantisation import QUANTISATIONS, dequantise, is_weight

WEIGHTS = [GGMLQuantizationType.F32, GGMLQuantizationType.F16, *_type_traits]


def blocks_of(kind: GGMLQuantizationType, rows: int, blocks: int, seed: int) -> np.ndarray:
    """Random bytes whose float scales are finite: every bit pattern of the integers, sane float16 fields."""
    _, size = GGML_QUANT_SIZES[kind]
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, (rows, blocks * size), np.uint8)
    with np.errstate(all="ignore"):
        good = np.isfinite(gguf.dequantize(raw, kind)).all()
    while not good:
        raw = random.integers(0, 256, (rows, blocks * size), np.uint8)
        raw &= 0xBB  # clears a bit of every possible float16 exponent
        good = bool(np.isfinite(gguf.dequantize(raw, kind)).all())
    return raw


@pytest.mark.parametrize("kind", WEIGHTS, ids=lambda kind: kind.name)
def test_block_by_block_as_ggml(kind):
    raw = blocks_of(kind, 40, 7, int(kind))
    np.testing.assert_array_equal(dequantise(raw, QUANTISATIONS[int(kind)]), gguf.dequantize(raw, kind))


def test_every_float16_is_widened_exactly():
    raw = np.arange(1 << 16, dtype=np.uint16).view(np.uint8)
    half = QUANTISATIONS[int(GGMLQuantizationType.F16)]
    for rows in (raw.reshape(64, -1), raw.reshape(2, -1)[:, : 2 * 0x7C00].reshape(2, -1)):
        np.testing.assert_array_equal(dequantise(rows, half), rows.view(np.float16).astype(np.float32))


def test_names_are_ggmls_spelling():
    names = {q.name for q in QUANTISATIONS.values()}
    assert {"f32", "f16", "bf16", "q4_0", "q5_1", "q8_0", "q2_K", "q4_K", "q6_K", "iq4_nl", "iq2_xxs", "mxfp4"} <= names


def test_what_is_called_a_weight_is_what_can_be_dequantised():
    assert {q.id for q in QUANTISATIONS.values() if is_weight(q)} == {int(kind) for kind in WEIGHTS}
