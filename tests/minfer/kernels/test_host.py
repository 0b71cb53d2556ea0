"""The CPU's kernels are compiled once, by what there is; where that fails the engine says so in one line and goes on."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minfer.kernels import KernelError, host, sources_folder
from tests.minfer.synthetic import Tiny, write_tiny

CHECKOUT = Path(__file__).resolve().parents[3]

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: install gcc")


@pytest.fixture
def sources(tmp_path, monkeypatch):
    monkeypatch.setenv("MINFER_KERNEL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cpu"
    folder.mkdir()
    (folder / "factor.h").write_text("#define FACTOR 2\n")
    (folder / "twice.c").write_text(
        '#include "factor.h"\n__attribute__((visibility("default"))) int twice(int x) { return FACTOR * x; }\n'
    )
    return folder


@needs_compiler
def test_a_library_is_compiled_once_for_the_same_sources(sources, monkeypatch):
    first = host.build(sources)
    assert ctypes.CDLL(str(first)).twice(21) == 42
    monkeypatch.setattr(host, "_compiled", lambda *_: pytest.fail("compiled again"))
    assert host.build(sources) == first


@needs_compiler
@pytest.mark.parametrize("changed", ["twice.c", "factor.h"])
def test_a_changed_source_or_header_makes_another_library(sources, changed):
    first = host.build(sources)
    (sources / changed).write_text((sources / changed).read_text() + "// changed\n")
    assert host.build(sources) != first
    assert host.build(sources, (*host.FLAGS, "-DOTHER")) != host.build(sources)


@needs_compiler
def test_a_source_that_does_not_compile_is_told_with_the_compilers_first_error(sources):
    (sources / "twice.c").write_text("int twice(int x) { return undefined_name; }\n")
    with pytest.raises(KernelError, match=r"exit code 1: .*twice\.c.*undefined_name"):
        host.build(sources)
    assert not list((sources.parent / "cache").glob("*"))


def test_no_compiler_and_no_sources_are_told(sources, monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(KernelError, match=r"no C compiler \(no-such-compiler\) is on the PATH; install gcc"):
        host.build(sources)
    with pytest.raises(KernelError, match="holds no C sources"):
        host.build(tmp_path)


def test_without_a_compiler_numpy_computes_and_one_line_says_so(tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny(path, Tiny("llama"))
    code = (
        "import sys, minfer\n"
        "engines = [minfer.load(sys.argv[1], backend='numpy') for _ in range(2)]\n"
        "print(engines[0].gates['native'], len(engines[1].prefill([1, 2, 3])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=CHECKOUT, capture_output=True, text=True, check=True,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "False 50\n"
    assert done.stderr.startswith("minfer: the CPU runs NumPy alone, more slowly: no C compiler")
    assert done.stderr.count("\n") == 1


def test_a_checkout_compiles_its_own_sources():
    assert {path.name for path in (sources_folder() / "cpu").glob("*.c")} >= {"mmv.c", "threads.c"}
    assert sources_folder() == CHECKOUT / "kernels"
