"""The CPU's kernels: ``kernels/cpu/*.c``, compiled by the system's C compiler for this CPU and kept beside the cubins."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from . import KernelError, sources_folder
from .build import cache_folder, keep

FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fvisibility=hidden", "-fPIC")
_LIBRARIES = ("-lpthread", "-lm")
_COMPILERS = ("cc", "gcc", "clang")
_LONGEST_COMPILATION_S = 300


@cache
def library() -> ctypes.CDLL:
    """The kernels that belong to this ``minfer``, loaded; compiled first (2 to 3 s) where the cache lacks them. Raises
    KernelError where there is no compiler, or where it fails."""
    path = build()
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise KernelError(f"{path}: cannot be loaded ({error}); delete it, so that it is compiled again") from error


def build(folder: Path | None = None, flags: tuple[str, ...] = FLAGS) -> Path:
    """The shared library of the sources in ``folder``, from the cache or compiled now. Raises KernelError.

    Its name holds a hash of all that made it: sources, flags, compiler, CPU. The same sources at another commit are the same
    library.
    """
    folder = folder or sources_folder() / "cpu"
    sources = sorted(path for path in folder.glob("*.[ch]"))
    if not sources:
        raise KernelError(f"{folder}: holds no C sources; install minfer again")
    compiler = _compiler()
    key = hashlib.sha256("\0".join((_version(compiler), *flags, _cpu())).encode())
    for source in sources:
        key.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    path = cache_folder() / f"cpu-{key.hexdigest()[:32]}.so"
    if not path.is_file():
        keep(path, _compiled(compiler, flags, [source for source in sources if source.suffix == ".c"]))
    return path


def _compiler() -> str:
    """The path of ``$CC``, else of the first compiler there is. Raises KernelError."""
    chosen = os.environ.get("CC", "")
    for name in (chosen,) if chosen else _COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    raise KernelError(f"no C compiler ({chosen or ', '.join(_COMPILERS)}) is on the PATH; install gcc")


def _version(compiler: str) -> str:
    return _ran([compiler, "--version"]).splitlines()[0]


def _compiled(compiler: str, flags: tuple[str, ...], sources: list[Path]) -> bytes:
    """The library's bytes; the sources are compiled on all cores."""

    def object_of(source: Path) -> str:
        made = Path(scratch) / f"{source.stem}.o"
        _ran([compiler, *flags, "-c", "-o", str(made), str(source)])
        return str(made)

    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        made = Path(scratch) / "kernels.so"
        _ran([compiler, *flags, "-shared", "-o", str(made), *pool.map(object_of, sources), *_LIBRARIES])
        return made.read_bytes()


def _ran(command: list[str]) -> str:
    """The standard output of a compiler. Raises KernelError with its first error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LONGEST_COMPILATION_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"{command[0]}: cannot be run ({error}); install gcc, or set CC") from error
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or [*done.stderr.splitlines(), "no message"]
        raise KernelError(f"{command[0]}: exit code {done.returncode}: {errors[0]}; install a current gcc, or set CC")
    return done.stdout


def _cpu() -> str:
    """What ``-march=native`` makes of this machine, as far as it can be told without asking the compiler."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    told = {line.partition(":")[0].strip(): line for line in reversed(lines)}
    return "\n".join(told.get(name, "") for name in ("model name", "flags", "Features", "CPU part")) + platform.machine()
