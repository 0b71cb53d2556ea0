"""Static figures are kept by commit, whatever machine measured it, and come back as they were written."""

import json

import pytest

from benchmarks.static.facts import KernelFacts
from benchmarks.static.store import StaticFigures, StaticFileError, read_static, static_path, target_of, write_static


def facts(kernel="rope", target="sm_90a", **changed):
    whole = {
        "source": "rope", "kernel": kernel, "target": target, "registers": 40, "spill_bytes": 0, "stack_bytes": 0,
        "shared_bytes": 0, "threads": 256, "warps_resident": 48, "matrix_instructions": 0, "matrix_kinds": {},
        "loop_per_matrix": None, "code_bytes": 512,
    }  # fmt: skip
    return KernelFacts(**(whole | changed))


def test_what_was_written_is_read(tmp_path):
    figures = StaticFigures("a" * 40, "NVRTC 13.0.88", (facts(), facts(target="sm_80", registers=44)))
    path = write_static(tmp_path, figures)
    assert path == static_path(tmp_path, "a" * 40)
    assert read_static(path) == figures
    assert read_static(path).of("sm_80")["rope"].registers == 44
    assert [item.name for item in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("text", ["", "not json\n", "{}\n", '{"format": "minfer-static", "version": 9}\n'])
def test_a_file_that_is_none_is_one_line(tmp_path, text):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(StaticFileError, match=r"x\.jsonl") as error:
        read_static(path)
    assert "\n" not in str(error.value)


def test_a_kernel_with_a_field_missing_is_refused(tmp_path):
    path = write_static(tmp_path, StaticFigures("a" * 40, "x", (facts(),)))
    head, line = path.read_text().splitlines()
    path.write_text(head + "\n" + json.dumps({"kernel": json.loads(line)["kernel"]}) + "\n")
    with pytest.raises(StaticFileError, match="cannot be read"):
        read_static(path)


def test_a_gpus_target_is_known_by_its_name():
    targets = ("sm_80", "sm_90a", "sm_120", "sm_121")
    assert target_of("NVIDIA H200", targets) == "sm_90a"
    assert target_of("NVIDIA A100-SXM4-80GB", targets) == "sm_80"
    assert target_of("NVIDIA GeForce RTX 5090", targets) == "sm_120"
    assert target_of("NVIDIA H200", ("sm_80",)) is None
    assert target_of("something new", targets) is None
    assert target_of(None, targets) is None
