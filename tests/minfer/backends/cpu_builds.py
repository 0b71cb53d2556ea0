"""The CPU kernels as they are built for other CPUs: each path through the ``#if``s of kernels/cpu, run where it can be."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from minfer.backends import cpu_kernels
from minfer.backends.cpu_kernels import CpuKernels
from minfer.kernels import host

from .apart import LibraryApart

SANITISED = "-fsanitize" in os.environ.get(host.MORE_FLAGS, "")
THREADS = 3


@dataclass(frozen=True)
class Build:
    flags: tuple[str, ...]
    """After host.FLAGS. None of them: as a user's, with MINFER_CFLAGS."""
    needs: frozenset[str] = frozenset()
    """Of the flags in /proc/cpuinfo."""
    apart: bool = False
    """In a process of its own, each array before a page that nobody may touch, at whatever address that gives (play.c)."""
    architecture: str = ""
    """Compiled for it, and run in its emulator."""


BUILDS = {"native": Build(())}
if not SANITISED:
    BUILDS["native, apart"] = Build((), apart=True)
if platform.machine() == "x86_64" and not SANITISED:
    avx2 = frozenset({"avx2"})
    v3, avx512f = avx2 | {"fma", "f16c", "bmi1", "bmi2", "movbe", "abm"}, frozenset({"avx512f"})
    BUILDS |= {
        "x86-64": Build(("-march=x86-64",)),
        "AVX2 alone": Build(("-march=x86-64", "-mavx2"), avx2),
        "x86-64-v3": Build(("-march=x86-64-v3",), v3),
        "AVX-512F alone": Build(("-march=x86-64-v3", "-mavx512f"), v3 | avx512f),
        "x86-64-v4": Build(("-march=x86-64-v4",), v3 | avx512f | {"avx512bw", "avx512vl", "avx512dq", "avx512cd"}),
    }
if platform.machine() != "aarch64" and not SANITISED:
    BUILDS |= {
        "ARMv8": Build(("-march=armv8-a",), apart=True, architecture="aarch64"),
        "ARM SVE": Build(("-march=armv8.4-a+sve",), apart=True, architecture="aarch64"),
    }

PARAMETERS = [pytest.param(name, marks=[pytest.mark.slow] if build.architecture else []) for name, build in BUILDS.items()]


@contextmanager
def kernels_of(name: str, scratch: Path) -> Iterator[CpuKernels]:
    """The kernels of a build; skips the calling test where it cannot be compiled or run here."""
    build = BUILDS[name]
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: install gcc")
    missing = build.needs - _cpu_flags()
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    flags = (*host.FLAGS, *build.flags) if build.flags else None
    if build.apart:
        yield from _apart(build.architecture, flags, scratch)
    else:
        yield CpuKernels(ctypes.CDLL(str(host.build(flags=flags))), THREADS)


def _cpu_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())


def _apart(architecture: str, flags: tuple[str, ...] | None, scratch: Path) -> Iterator[CpuKernels]:
    compiler, emulation = "cc", []
    if architecture:
        compiler = shutil.which(f"{architecture}-linux-gnu-gcc") or ""
        emulator = shutil.which(f"qemu-{architecture}-static") or shutil.which(f"qemu-{architecture}")
        if not compiler or not emulator:
            pytest.skip(f"no {architecture} compiler and emulator: install gcc-{architecture}-linux-gnu qemu-user-static")
        libc = subprocess.run([compiler, "-print-file-name=libc.so.6"], check=True, capture_output=True, text=True).stdout
        emulation = [emulator, "-L", str(Path(libc.strip()).resolve().parents[1])]
    source, player = Path(__file__).parent / "host" / "play.c", scratch / "play"
    subprocess.run([compiler, "-O2", "-o", str(player), str(source), "-ldl"], check=True)
    with pytest.MonkeyPatch.context() as patch:
        if architecture:
            patch.setenv("CC", compiler)
        library = LibraryApart([*emulation, str(player), str(host.build(flags=flags))])
        patch.setattr(cpu_kernels, "address_of", library.address_of)
        yield CpuKernels(library, THREADS)  # type: ignore[arg-type]
        library.close()
