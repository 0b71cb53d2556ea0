"""Compiling kernels: the right sources, once, for every target, with errors that say what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from minfer.kernels import KernelError, build, nvrtc, sources_folder

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder with one small source and its header, and an empty cache."""
    monkeypatch.setenv("MINFER_KERNEL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "common.cuh").write_text("#define FACTOR 2.0f\n")
    (folder / "twice.cu").write_text(
        '#include "common.cuh"\nextern "C" __global__ void twice(float* x) { x[threadIdx.x] *= FACTOR; }\n'
    )
    return folder


def test_a_checkout_reads_its_own_kernels():
    assert sources_folder() == CHECKOUT / "kernels"


def test_an_installed_package_reads_the_sources_that_came_with_it(tmp_path):
    # What the wheel's package-dir makes: kernels/ as minfer/kernel_sources. A foreign kernels/ beside it must not win.
    shutil.copytree(CHECKOUT / "minfer", tmp_path / "minfer", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CHECKOUT / "kernels", tmp_path / "minfer" / "kernel_sources")
    shutil.copytree(CHECKOUT / "kernels", tmp_path / "kernels")
    code = "import minfer.kernels as k; print(k.sources_folder())"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == tmp_path / "minfer" / "kernel_sources"


def test_the_wheel_is_told_to_carry_the_sources():
    tools = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert tools["package-dir"]["minfer.kernel_sources"] == "kernels"
    assert "minfer.kernel_sources" in tools["packages"]
    assert tools["package-data"]["minfer.kernel_sources"] == ["*.cu", "*.cuh", "cpu/*.c", "cpu/*.h"]


def test_every_package_of_minfer_is_in_the_wheel():
    packages = set(tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    on_disk = {".".join(path.parent.relative_to(CHECKOUT).parts) for path in (CHECKOUT / "minfer").rglob("__init__.py")}
    assert on_disk <= packages


def test_all_cubins_are_there_at_once_and_only_what_is_missing_is_compiled(sources, monkeypatch):
    (sources / "thrice.cu").write_text('extern "C" __global__ void thrice(float* x) { x[threadIdx.x] *= 3.0f; }\n')
    build.build("twice", "sm_90a", sources)
    jobs = []

    class Pool:
        def __init__(self, workers, mp_context):
            jobs.append(workers)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def map(self, work, missing):
            jobs.extend(missing)
            return map(work, missing)

    monkeypatch.setattr(build, "ProcessPoolExecutor", Pool)
    cubins = build.build_all(["sm_90a"], sources)
    assert jobs == [1, ("thrice", "sm_90a", sources)]
    assert [cubin.source for cubin in cubins] == ["thrice", "twice"]
    assert all(cubin.path.read_bytes()[:4] == b"\x7fELF" for cubin in cubins)
    assert build.build_all(["sm_90a"], sources) == cubins
    assert len(jobs) == 2


def test_a_cubin_is_compiled_once(sources, monkeypatch):
    first = build.build("twice", "sm_90a", sources)
    assert first.path.read_bytes()[:4] == b"\x7fELF"
    assert "registers" in first.log.read_text()
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *_: pytest.fail("compiled again"))
    assert build.build("twice", "sm_90a", sources) == first


@pytest.mark.parametrize("changed", ["twice.cu", "common.cuh"])
def test_a_changed_source_or_header_makes_another_cubin(sources, changed):
    first = build.build("twice", "sm_80", sources)
    path = sources / changed
    path.write_text(path.read_text() + "// changed\n")
    assert build.build("twice", "sm_80", sources).path != first.path


def test_another_target_makes_another_cubin(sources):
    assert build.build("twice", "sm_80", sources).path != build.build("twice", "sm_120", sources).path


def test_a_source_that_does_not_compile_is_named_with_the_compilers_first_error(sources):
    (sources / "twice.cu").write_text('extern "C" __global__ void twice() { undefined_name(); }\n')
    with pytest.raises(KernelError, match=r"twice\.cu: NVRTC 1.*undefined_name"):
        build.build("twice", "sm_80", sources)
    assert not list((sources.parent / "cache").glob("*"))


def test_a_missing_source_is_named_with_those_there_are(sources):
    with pytest.raises(KernelError, match=r"thrice\.cu does not exist; sources here: twice"):
        build.build("thrice", "sm_80", sources)


def test_a_cache_that_cannot_be_written_says_what_to_set(sources, monkeypatch):
    (sources.parent / "file").write_text("")
    monkeypatch.setenv("MINFER_KERNEL_CACHE", str(sources.parent / "file" / "cache"))
    with pytest.raises(KernelError, match="MINFER_KERNEL_CACHE"):
        build.build("twice", "sm_80", sources)


@pytest.mark.parametrize(("major", "minor", "target"), [(8, 0, "sm_80"), (9, 0, "sm_90a"), (12, 1, "sm_121")])
def test_targets_follow_the_compute_capability(major, minor, target):
    assert build.target_of(major, minor) == target


def test_a_gpu_without_the_needed_instructions_is_refused():
    with pytest.raises(KernelError, match=r"compute capability 7\.5.*backend numpy"):
        build.target_of(7, 5)
