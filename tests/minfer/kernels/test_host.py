"""The CPU's kernels are compiled once, by what there is; where that fails the engine says so in one line and goes on."""

from __future__ import annotations

import ctypes
import errno
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minfer.kernels import KernelError, build, host, sources_folder
from minfer.kernels.host import library
from tests.minfer.synthetic import Tiny, write_tiny

CHECKOUT = Path(__file__).resolve().parents[3]

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: install gcc")


@pytest.fixture
def sources(tmp_path, monkeypatch):
    monkeypatch.setenv("MINFER_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(host.MORE_FLAGS, raising=False)
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


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Makes a script of ``lines`` the compiler; ``$@`` is what it is asked, and ``calls`` holds it."""

    def of(lines):
        path = tmp_path / "compiler"
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path / "calls"}\n{lines}\n')
        path.chmod(0o755)
        monkeypatch.setenv("CC", str(path))

    return of


@needs_compiler
@pytest.mark.parametrize("size", [0, 100, -1])
def test_half_a_file_in_the_cache_is_compiled_anew(sources, size):
    path = host.build(sources)
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    again = host.build(sources)
    assert ctypes.CDLL(str(again)).twice(21) == 42
    assert again.read_bytes() == whole


@needs_compiler
def test_machines_whose_cpus_differ_may_share_a_cache(sources, compiler):
    compiler('exec cc "$@"')
    here = host.build(sources)
    compiler('case "$*" in *-dM*) echo "#define __ANOTHER_INSTRUCTION__ 1";; esac\nexec cc "$@"')
    assert host.build(sources) != here


@needs_compiler
@pytest.mark.parametrize(
    ("refused", "asked"),
    [("-march=native", "-mcpu=native"), ("-march=native* | *-mcpu=native", "no CPU"), ("none", "-march=native")],
)
def test_a_compiler_is_asked_for_this_cpu_as_it_takes_it(sources, compiler, tmp_path, refused, asked):
    # The system's own may not know -mcpu=native.
    compiler(
        f'case "$*" in *{refused}*) echo "error: unknown" >&2; exit 1;; esac\nexec cc $(echo "$@" | sed s/-mcpu=native//)'
    )
    assert ctypes.CDLL(str(host.build(sources))).twice(21) == 42
    compilation = next(line for line in (tmp_path / "calls").read_text().splitlines() if " -c " in line)
    assert [word for word in compilation.split() if word.endswith("native")] == ([] if asked == "no CPU" else [asked])


@needs_compiler
def test_flags_of_the_users_own_come_last_and_may_choose_the_cpu(sources, compiler, tmp_path, monkeypatch):
    (sources / "twice.c").write_text('__attribute__((visibility("default"))) int twice(int x) { return FACTOR * x; }\n')
    compiler('exec cc "$@"')
    monkeypatch.setenv("CC", f"{tmp_path / 'compiler'} -DFACTOR=2")
    assert ctypes.CDLL(str(host.build(sources))).twice(21) == 42
    generic = {"x86_64": "-march=x86-64", "aarch64": "-march=armv8-a"}.get(platform.machine(), "-O1")
    monkeypatch.setenv(host.MORE_FLAGS, f"{generic} -UFACTOR '-DFACTOR=3 + 0'")
    assert ctypes.CDLL(str(host.build(sources))).twice(21) == 3
    last = (tmp_path / "calls").read_text().splitlines()[-2]
    assert ("native" in last) == (generic == "-O1")


@needs_compiler
def test_processes_that_compile_at_once_each_load_a_whole_library(sources):
    code = (
        "import ctypes, pathlib, sys\n"
        "from minfer.kernels import host\n"
        "print(ctypes.CDLL(str(host.build(pathlib.Path(sys.argv[1])))).twice(21))\n"
    )
    command = [sys.executable, "-c", code, str(sources)]
    running = [subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in running] == ["42\n"] * 4
    # No attempt's own file stays, and whoever shares the folder may read what is kept.
    kept = list((sources.parent / "cache").iterdir())
    assert all(path.suffix == ".so" and path.stat().st_mode & 0o777 == 0o644 for path in kept)


def full(_descriptor):
    raise OSError(errno.ENOSPC, "No space left on device")


@needs_compiler
def test_a_full_cache_is_told_and_left_as_it_was(sources, monkeypatch):
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(KernelError, match="cache: No space left on device; set MINFER_KERNEL_CACHE to a writable folder"):
        host.build(sources)
    assert list((sources.parent / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("exec sleep 60", "compiler: no answer within 0.2 s; install gcc, or set CC"),
        ("exit 0", r"compiler: left no library \(.*kernels.so.*\); set TMPDIR"),
        ("printf 'not Unicode: \\377 error\\n' >&2; exit 3", "exit code 3: not Unicode: .* error; install a current gcc"),
    ],
)
def test_a_compiler_that_hangs_or_makes_nothing_is_told(sources, compiler, monkeypatch, lines, told):
    monkeypatch.setattr(host, "_LONGEST_ANSWER_S", 0.2)
    compiler(lines)
    with pytest.raises(KernelError, match=told):
        host.build(sources)


def test_a_variable_that_no_shell_could_read_is_told(sources, monkeypatch):
    monkeypatch.setenv(host.MORE_FLAGS, "-DX='")
    with pytest.raises(KernelError, match="MINFER_CFLAGS=-DX=': No closing quotation; write it as for a shell"):
        host.build(sources)


def test_a_user_without_a_home_is_told(sources, monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MINFER_KERNEL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(KernelError, match="kernel cache: Could not determine home directory"):
        build.cache_folder()


def test_what_failed_is_not_tried_again_for_each_engine(compiler, tmp_path):
    compiler("exit 1")
    host._library.cache_clear()
    try:
        for _ in range(2):
            with pytest.raises(KernelError, match="exit code 1: no message"):
                library()
    finally:
        host._library.cache_clear()
    assert (tmp_path / "calls").read_text() == "--version\n"


@needs_compiler
def test_a_folder_that_no_program_may_be_loaded_from_is_told(sources, monkeypatch):
    def refuse(_path):
        raise OSError("failed to map segment from shared object")

    monkeypatch.setattr(host, "sources_folder", lambda: sources.parent)
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    host._library.cache_clear()
    try:
        with pytest.raises(
            KernelError, match=r"\.so: cannot be loaded \(failed to map.*\); set MINFER_KERNEL_CACHE to a folder that"
        ):
            library()
    finally:
        host._library.cache_clear()


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
