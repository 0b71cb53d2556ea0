"""Names and sums of a model, by hand on a tiny one."""

import pytest

import minfer
from minfer.description import (
    file_type,
    model_type,
    parameters,
    quantisation_mix,
    weight_bytes,
    work_by_class,
)
from minfer.gguf import open_gguf
from minfer.synthesis.write import synthesise


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    synthesise(path, "tiny", "q4_k_m")
    return path


def test_type_and_sums(tiny):
    file = open_gguf(tiny)
    mix = {entry.quantisation: entry for entry in quantisation_mix(file)}
    assert set(mix) == {"q4_K", "q6_K", "f32"}
    assert mix["q6_K"].tensors == 1 + 2 * 4
    assert sum(entry.parameters for entry in mix.values()) == parameters(file)
    assert sum(entry.nbytes for entry in mix.values()) == weight_bytes(file)
    assert model_type(file) == f"qwen2 {parameters(file) / 1e6:.0f}M Q4_K - Medium"


@pytest.mark.parametrize(
    ("stored", "name"),
    [(0, "all F32"), (1, "F16"), (7, "Q8_0"), (14, "Q4_K - Small"), (18, "Q6_K"), (999, "Q4_K"), (None, "Q4_K")],
)
def test_file_types(tiny, stored, name):
    file = open_gguf(tiny)
    metadata = {**file.metadata, "general.file_type": stored}
    if stored is None:
        del metadata["general.file_type"]
    object.__setattr__(file, "metadata", metadata)
    assert file_type(file) == name


def test_work_by_class_counts_every_operation(tiny):
    operations = minfer.load(tiny, backend="numpy").operations(64)
    works = work_by_class(operations)
    assert sum(work.macs for work in works) == sum(operation.macs for operation in operations)
    assert sum(work.operations for work in works) == len(operations)
    assert [work.macs for work in works] == sorted((work.macs for work in works), reverse=True)
