"""The reader gives back what ggml's own writer wrote, lazily, and opens a large vocabulary at once."""

import hashlib

import gguf
import numpy as np
import pytest

from minfer.errors import MinferError
from minfer.gguf import StringArray, open_gguf
from tests.minfer.synthetic import Tiny, write_tiny
from tests.real_models import GEMMA, real_model


def test_metadata_of_every_type(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    scalars = {
        "u8": (writer.add_uint8, 200), "i8": (writer.add_int8, -5), "u16": (writer.add_uint16, 60000),
        "i16": (writer.add_int16, -300), "u32": (writer.add_uint32, 4 << 20), "i32": (writer.add_int32, -70000),
        "u64": (writer.add_uint64, 1 << 60), "i64": (writer.add_int64, -(1 << 60)), "f32": (writer.add_float32, 1.5),
        "f64": (writer.add_float64, 0.1), "bool": (writer.add_bool, True), "text": (writer.add_string, "naïve ▁"),
    }  # fmt: skip
    for key, (add, value) in scalars.items():
        add(key, value)
    arrays = {"ints": [1, -2, 3], "floats": [0.5, -1.5], "flags": [True, False, True], "words": ["a", "", "héllo"]}
    for key, value in arrays.items():
        writer.add_array(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    metadata = open_gguf(tmp_path / "a.gguf").metadata
    assert metadata["general.architecture"] == "llama"
    assert {key: metadata[key] for key in scalars} == {key: value for key, (_, value) in scalars.items()}
    assert {key: list(metadata[key]) for key in arrays} == arrays
    assert isinstance(metadata["words"], StringArray)
    assert metadata["words"][-1] == "héllo"
    assert metadata["words"][1:] == ["", "héllo"]
    with pytest.raises(IndexError):
        metadata["words"][3]


def test_tensors_are_views_of_what_was_written(tmp_path):
    stored = write_tiny(tmp_path / "t.gguf", Tiny(type="Q8_0"))
    file = open_gguf(tmp_path / "t.gguf")
    assert set(file.tensors) == set(stored)
    for name, weight in stored.items():
        tensor = file.tensors[name]
        assert tensor.shape == weight.shape
        assert tensor.type.name == ("f32" if weight.ndim == 1 else "q8_0")
        assert not tensor.raw.flags.owndata
        assert tensor.raw.nbytes == tensor.nbytes
        np.testing.assert_array_equal(tensor.dequantise(), weight)


def test_digest_is_the_sha256_of_the_file(tmp_path):
    write_tiny(tmp_path / "t.gguf", Tiny())
    assert open_gguf(tmp_path / "t.gguf").digest() == hashlib.sha256((tmp_path / "t.gguf").read_bytes()).hexdigest()


def test_parts_make_one_model(tmp_path):
    stored = write_tiny(tmp_path / "whole.gguf", Tiny())
    names = list(stored)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama", split_max_tensors=10)
    for name in names:
        writer.add_tensor(name, stored[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts = sorted(tmp_path.glob("m-0*.gguf"))
    assert len(parts) == -(-len(names) // 10)
    for part in parts:
        file = open_gguf(part)
        assert set(file.tensors) == set(names)
        assert file.parts == tuple(parts)
        np.testing.assert_array_equal(file.tensors[names[-1]].dequantise(), stored[names[-1]])
    parts[1].unlink()
    with pytest.raises(MinferError, match="is not there; put all parts in one folder"):
        open_gguf(parts[0])


@pytest.mark.real_model
def test_a_large_vocabulary_stays_in_the_file():
    path = real_model(GEMMA)
    file = open_gguf(path)
    tokens = file.metadata["tokenizer.ggml.tokens"]
    assert len(tokens) == 262144
    assert (tokens[2], tokens[262143]) == ("<bos>", tokens[-1])
    assert len(file.metadata["tokenizer.ggml.scores"]) == 262144
    assert not file.metadata["tokenizer.ggml.scores"].flags.owndata
