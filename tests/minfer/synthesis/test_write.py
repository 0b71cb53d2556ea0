"""A synthetic model is read back, has the deviation it should have, and runs; nothing half-written stays."""

import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType as Type

import minfer
from minfer.errors import MinferError
from minfer.gguf import open_gguf
from minfer.quantisation import QUANTISATIONS, dequantise
from minfer.synthesis import write
from minfer.synthesis.blocks import random_tensor
from minfer.synthesis.shapes import ARCHITECTURES
from minfer.synthesis.write import synthesise


@pytest.mark.parametrize("kind", [Type.Q4_0, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.F16])
def test_blocks_have_mean_0_and_the_wanted_deviation(kind):
    raw = np.concatenate(list(random_tensor(kind, 1 << 18, 0.01, np.random.default_rng(3))))
    weights = dequantise(raw.reshape(1, -1), QUANTISATIONS[kind])
    assert weights.size == 1 << 18
    assert weights.std() == pytest.approx(0.01, rel=0.05)
    assert abs(weights.mean()) < 0.01 * 0.02
    blocks = weights.reshape(-1, 32).std(1)
    assert blocks.std() > 0.05 * blocks.mean()


def test_no_scale_is_a_subnormal_float16_even_in_the_longest_rows():
    for kind, at in ((Type.Q4_K, slice(0, 4)), (Type.Q6_K, slice(208, 210))):
        raw = np.concatenate(list(random_tensor(kind, 1 << 16, 1 / 18944**0.5, np.random.default_rng(3))))
        blocks = raw.reshape(-1, QUANTISATIONS[kind].block_bytes)
        scales = np.ascontiguousarray(blocks[:, at]).view(np.float16)
        assert np.median(np.abs(scales)) > np.finfo(np.float16).smallest_normal


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_engine_runs_it_and_activations_stay_sane(architecture, tmp_path):
    path = tmp_path / "tiny.gguf"
    assert synthesise(path, "tiny", "q4_k_m", architecture=architecture) == path.stat().st_size
    engine = minfer.load(path, backend="numpy")
    logits = engine.logits([1, 500, 7, 1023, 2])
    assert np.isfinite(logits).all()
    assert 0.5 < logits.std() < 2
    assert len(set(logits.argmax(1).tolist())) > 1


def test_the_same_seed_gives_the_same_file_and_another_seed_another(tmp_path):
    contents = []
    for index, seed in enumerate((0, 0, 1)):
        synthesise(tmp_path / f"{index}.gguf", "tiny", "q8_0", seed=seed)
        contents.append((tmp_path / f"{index}.gguf").read_bytes())
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


def test_metadata_says_the_shape_and_that_there_is_no_vocabulary(tmp_path):
    synthesise(tmp_path / "m.gguf", "tiny", "q4_k_m")
    metadata = open_gguf(tmp_path / "m.gguf").metadata
    assert metadata["tokenizer.ggml.model"] == "none"
    assert metadata["qwen2.vocab_size"] == 1024
    assert metadata["general.file_type"] == 15


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path):
    out = tmp_path / "m.gguf"
    out.write_bytes(b"mine")
    with pytest.raises(MinferError, match=r"m\.gguf: is already there; give --force"):
        synthesise(out, "tiny", "q4_k_m")
    assert out.read_bytes() == b"mine"
    synthesise(out, "tiny", "q4_k_m", force=True)
    assert out.stat().st_size > 1 << 20


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_nothing_half_written_stays(error, tmp_path, monkeypatch):
    def fails(*arguments):
        raise error

    monkeypatch.setattr(write, "random_tensor", fails)
    with pytest.raises((KeyboardInterrupt, MinferError)):
        synthesise(tmp_path / "m.gguf", "tiny", "q4_k_m")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_or_too_full_is_named(tmp_path, monkeypatch):
    with pytest.raises(MinferError, match="cannot be written"):
        synthesise(tmp_path / "none" / "m.gguf", "tiny", "q4_k_m")
    monkeypatch.setattr(write.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(MinferError, match=r"needs 0\.00 GB, 0\.00 are free"):
        synthesise(tmp_path / "m.gguf", "tiny", "q4_k_m")
