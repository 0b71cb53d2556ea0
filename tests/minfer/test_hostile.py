"""Damaged, foreign and absurd files end in one line that says what is wrong, or in an answer; never in anything else."""

import os
import struct
import tempfile
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minfer
from minfer.errors import MinferError
from minfer.gguf import open_gguf
from tests.fuzz.fuzz_gguf import check
from tests.minfer.synthetic import Tiny, weights_of, write_tiny
from tests.real_models import SMOLLM2, real_model

SMALL = {
    "llama": Tiny("llama", layers=1, embedding=32, feed_forward=32, vocabulary=8, key_length=8, value_length=8, type="Q8_0"),
    "gemma3": Tiny("gemma3", layers=2, embedding=32, feed_forward=32, vocabulary=8, key_length=8, value_length=8,
                   extra={"attention.sliding_window": 4, "rope.scaling.type": "yarn", "rope.scaling.factor": 2.0}),
    "qwen3moe": Tiny("qwen3moe", layers=1, embedding=32, feed_forward=32, vocabulary=8, key_length=8, value_length=8,
                     experts=3, experts_used=2),
}  # fmt: skip
MOST_BYTES = 32 << 20
"""What reading a file of 60 kB may allocate at most: the key-value cache of an engine, its buffers, and room."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for name, tiny in SMALL.items():
        write_tiny(folder / name, tiny)
    return {name: (folder / name).read_bytes() for name in SMALL}


def check_bytes(data: bytes) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.gguf"
        path.write_bytes(data)
        tracemalloc.start()
        try:
            line = check(path)
            assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
        finally:
            tracemalloc.stop()
        return line


def test_undamaged_files_run(files):
    assert [check_bytes(data) for data in files.values()] == [None] * len(files)


@settings(max_examples=120, deadline=None)
@given(name=st.sampled_from(sorted(SMALL)), share=st.floats(0, 1, exclude_max=True))
def test_cut_files(files, name, share):
    data = files[name][: int(len(files[name]) * share)]
    assert check_bytes(data) is not None


_NUMBERS = [0, 1, 2, 3, 7, 255, 256, 65535, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, (1 << 63) - 1, (1 << 64) - 1]
MUTATION = st.one_of(
    st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)),
    st.tuples(st.floats(0, 1), st.sampled_from(_NUMBERS).map(lambda n: struct.pack("<Q", n))),
    st.tuples(st.floats(0, 1), st.sampled_from(_NUMBERS).map(lambda n: struct.pack("<I", n & 0xFFFFFFFF))),
)


@settings(max_examples=400, deadline=None)
@given(name=st.sampled_from(sorted(SMALL)), mutations=st.lists(MUTATION, min_size=1, max_size=4))
def test_mutated_headers(files, name, mutations):
    data = bytearray(files[name])
    header = len(data) - sum(4 * value.size for value in weights_of(SMALL[name]).values()) // (4 if name == "llama" else 1)
    for share, change in mutations:
        at = int(max(64, min(header, len(data) - 8)) * share)
        data[at : at + len(change)] = change
    check_bytes(bytes(data))


@pytest.mark.real_model
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_mutated_and_cut_real_header(data):
    real = real_model(SMOLLM2)
    start = min(tensor.offset for tensor in open_gguf(real).tensors.values())
    header = bytearray(real.open("rb").read(start))
    size = real.stat().st_size
    for share, change in data.draw(st.lists(MUTATION, min_size=0, max_size=3)):
        # The first and the last kilobytes hold the counts, the scalars and the tensors' descriptions.
        at = int(share * 3000) if data.draw(st.booleans()) else start - 1 - int(share * 20000)
        header[at : at + len(change)] = change
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.gguf"
        path.write_bytes(header)
        # A sparse file: as long as the real one, or cut, without its weights' bytes.
        os.truncate(path, data.draw(st.sampled_from([size, size - 1, size // 2, start, start // 2])))
        try:
            minfer.load(path, backend="numpy")
        except MinferError as error:
            assert "\n" not in str(error)


def rewritten(tmp_path, tiny=SMALL["llama"], **changes):
    """The small model with tensors replaced, or left out where the value is None."""
    weights = weights_of(tiny) | {name.replace("__", "."): value for name, value in changes.items()}
    path = tmp_path / "changed.gguf"
    write_tiny(path, tiny, {name: value for name, value in weights.items() if value is not None})
    return path


def test_missing_tensor_is_named(tmp_path):
    path = rewritten(tmp_path, blk__0__ffn_up__weight=None)
    with pytest.raises(MinferError, match=r"changed\.gguf: tensor 'blk\.0\.ffn_up\.weight' is missing \(shape \[32, 32\]\)"):
        minfer.load(path)


def test_wrong_shape_names_both(tmp_path):
    path = rewritten(tmp_path, blk__0__attn_k__weight=np.zeros((24, 32), np.float32))
    expected = r"tensor 'blk\.0\.attn_k\.weight' has shape \[24, 32\], the metadata implies \[16, 32\]"
    with pytest.raises(MinferError, match=expected):
        minfer.load(path)


@pytest.mark.parametrize(
    ("architecture", "changes", "line"),
    [
        ("mamba", {}, "architecture 'mamba' is not supported, expected one of gemma3, llama, qwen2, qwen3, qwen3moe"),
        ("llama", {"block_count": 3}, "tensor 'blk.1.attn_norm.weight' is missing"),
        ("llama", {"attention.head_count_kv": 3}, "4 heads cannot share 3 key-value heads"),
        ("llama", {"attention.head_count": 0}, "attention.head_count is 0, expected a whole number from 1"),
        ("llama", {"attention.head_count_kv": [2, 1]}, "expected one whole number, the same in all layers"),
        ("llama", {"attention.head_count_kv": ["2", "2"]}, "expected one whole number, the same in all layers"),
        ("llama", {"block_count": 1 << 31}, "block_count is 2147483648, expected a whole number from 1 to"),
        ("llama", {"block_count": "one"}, "block_count is 'one', expected a whole number"),
        ("llama", {"attention.layer_norm_rms_epsilon": float("nan")}, "layer_norm_rms_epsilon is nan, expected a number"),
        ("llama", {"rope.scaling.type": "longrope"}, "rope.scaling.type is 'longrope', expected none, linear or yarn"),
        ("llama", {"rope.dimension_count": 7}, "rope.dimension_count is 7, expected an even number up to the key length 8"),
        ("llama", {"rope.freq_base": 0.5}, "rope.freq_base is 0.5, expected a number above 1"),
        ("llama", {"expert_count": 4, "expert_used_count": 2}, "with 4 experts is not supported"),
        ("qwen3moe", {}, "expert_count is 0"),
    ],
)  # fmt: skip
def test_what_the_metadata_cannot_mean(tmp_path, architecture, changes, line):
    tiny = Tiny(**{**vars(SMALL["llama"]), "architecture": architecture, "extra": changes})
    write_tiny(tmp_path / "t.gguf", tiny, weights_of(Tiny(**{**vars(SMALL["llama"]), "architecture": "qwen3"})))
    with pytest.raises(MinferError) as error:
        minfer.load(tmp_path / "t.gguf")
    assert line in str(error.value)
    assert str(tmp_path / "t.gguf") in str(error.value)


def test_type_that_nobody_knows_is_named(tmp_path, files):
    data = files["llama"]
    at = data.index(b"blk.0.ffn_up.weight") + len(b"blk.0.ffn_up.weight") + 4 + 16
    assert struct.unpack_from("<I", data, at) == (int(gguf.GGMLQuantizationType.Q8_0),)
    path = tmp_path / "t.gguf"
    for kind, line in ((999, "type 999"), (int(gguf.GGMLQuantizationType.Q8_K), "q8_K")):
        path.write_bytes(data[:at] + struct.pack("<I", kind) + data[at + 4 :])
        with pytest.raises(MinferError, match=rf"tensor 'blk\.0\.ffn_up\.weight' .*{line}"):
            minfer.load(path)


@pytest.mark.parametrize(
    ("start", "line"),
    [(b"", "not a GGUF file"), (b"PK\x03\x04" + bytes(100), "not a GGUF file"), (b"GGUF", "ends at byte 4 inside"),
     (b"GGUF" + struct.pack("<I", 1) + bytes(99), "version 1"), (b"GGUF" + struct.pack(">I", 3) + bytes(99), "big-endian"),
     (b"GGUF" + struct.pack("<IQQ", 3, 1 << 63, 1), "claims 9223372036854775808 tensors")],
)  # fmt: skip
def test_foreign_files(tmp_path, start, line):
    path = tmp_path / "foreign.gguf"
    path.write_bytes(start)
    with pytest.raises(MinferError, match=line):
        open_gguf(path)


@pytest.mark.parametrize("path", ["nowhere.gguf", "."])
def test_paths_that_are_no_file(tmp_path, path):
    with pytest.raises(MinferError, match="cannot be read"):
        open_gguf(tmp_path / path)


@pytest.mark.parametrize(
    ("tokens", "line"),
    [([], "expected a row of whole numbers"), ([0.5], "expected a row of whole numbers"),
     ([0, 8], "token 1 is 8, expected 0 to 7"), ([-1], "token 0 is -1, expected 0 to 7"),
     ([3, 2**32 + 3], "token 1 is 4294967299, expected 0 to 7"), (np.array([2**63 + 1], np.uint64), "token 0 is 922337"),
     (np.array([1, -3, 9], np.int8)[::2], "token 1 is 9, expected 0 to 7"),
     ([0] * 17, "17 tokens do not fit the context of 16"),
     ([1 << 70], "expected a row of whole numbers")],
)  # fmt: skip
def test_tokens_that_cannot_be_run(tmp_path, tokens, line):
    write_tiny(tmp_path / "t.gguf", SMALL["llama"])
    engine = minfer.load(tmp_path / "t.gguf", context=16)
    for run in (engine.prefill, engine.logits):
        with pytest.raises(MinferError, match=line):
            run(tokens)
    engine.prefill([0] * 16)
    with pytest.raises(MinferError, match="17 tokens do not fit the context of 16; shorten the text, or load with a larger"):
        engine.decode(0)


@pytest.mark.parametrize(
    ("options", "line"),
    [({"backend": "tpu"}, "backend 'tpu' is unknown"), ({"ubatch": 0}, "ubatch is 0"), ({"context": -5}, "context is -5"),
     ({"backend": "numpy", "gates": {"nonsense": True}}, "nonsense")],
)  # fmt: skip
def test_options_that_cannot_be_meant(tmp_path, options, line):
    write_tiny(tmp_path / "t.gguf", SMALL["llama"])
    with pytest.raises(MinferError, match=line):
        minfer.load(tmp_path / "t.gguf", **options)


def test_a_file_that_is_cut_while_it_is_mapped_is_told_before_it_is_read(tmp_path):
    path = tmp_path / "t.gguf"
    write_tiny(path, Tiny("llama"))
    engine = minfer.load(path, backend="numpy")
    engine.prefill([1, 2, 3])
    size = path.stat().st_size
    os.truncate(path, size // 2)
    with pytest.raises(MinferError, match=rf"t\.gguf: was cut from {size} to {size // 2} bytes while it was in use"):
        engine.decode(1)
