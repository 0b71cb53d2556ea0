"""The CPU's kernels: ``kernels/cpu/*.c``, compiled by the system's C compiler for this CPU and kept beside the cubins."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from . import KernelError, sources_folder
from .build import cache_folder, keep

FLAGS = ("-O3", "-std=gnu11", "-fvisibility=hidden", "-fPIC")
MORE_FLAGS = "MINFER_CFLAGS"
"""Environment variable: flags that come after these. Where they choose a CPU (-march, -mcpu), this one is not asked for."""

_THIS_CPU = (("-march=native",), ("-mcpu=native",), ())
"""How compilers are asked for all that this CPU can do; the first that one takes. The last: what any CPU of its kind can."""
_LIBRARIES = ("-lpthread", "-lm")
_COMPILERS = ("cc", "gcc", "clang")
_LONGEST_ANSWER_S, _LONGEST_COMPILATION_S = 30, 300


def library() -> ctypes.CDLL:
    """The kernels that belong to this ``minfer``, loaded; compiled first (2 to 3 s) where the cache lacks them. Raises
    KernelError where there is no compiler, or where it fails. A process asks once: what failed is not tried again."""
    loaded = _library()
    if isinstance(loaded, KernelError):
        raise loaded
    return loaded


@cache
def _library() -> ctypes.CDLL | KernelError:
    try:
        path = build()
    except KernelError as error:
        return error
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        return KernelError(f"{path}: cannot be loaded ({error}); set MINFER_KERNEL_CACHE to a folder that may hold programs")


def build(folder: Path | None = None, flags: tuple[str, ...] | None = None) -> Path:
    """The shared library of the sources in ``folder``, from the cache or compiled now. Raises KernelError.

    Its name holds a hash of all that made it: sources, flags, compiler, and what that may use of the CPU, so that different
    machines may share a folder. The same sources at another commit are the same library. A second hash in its name is its
    content's: half a file is compiled anew instead of loaded.
    """
    folder = folder or sources_folder() / "cpu"
    sources = sorted(path for path in folder.glob("*.[ch]"))
    if not sources:
        raise KernelError(f"{folder}: holds no C sources; install minfer again")
    compiler = _compiler()
    version = _ran([*compiler, "--version"], _LONGEST_ANSWER_S).partition("\n")[0]
    flags, usable = _for_this_cpu(compiler, (*FLAGS, *_words(MORE_FLAGS)) if flags is None else flags)
    key = hashlib.sha256("\0".join((version, *flags, usable)).encode())
    for source in sources:
        key.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    stem = f"cpu-{key.hexdigest()[:32]}"
    for path in sorted(cache_folder().glob(f"{stem}-*.so")):
        if path.stem == f"{stem}-{_digest(_content(path))}":
            return path
    code = _compiled(compiler, flags, [source for source in sources if source.suffix == ".c"])
    path = cache_folder() / f"{stem}-{_digest(code)}.so"
    keep(path, code)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _content(path: Path) -> bytes:
    """Nothing for what cannot be read: another user's, or gone by now."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _words(variable: str) -> list[str]:
    """An environment variable as a shell would split it. Raises KernelError."""
    try:
        return shlex.split(os.environ.get(variable, ""))
    except ValueError as error:
        raise KernelError(f"{variable}={os.environ[variable]}: {error}; write it as for a shell") from error


def _compiler() -> list[str]:
    """``$CC``, else the first compiler there is, by its path. Raises KernelError."""
    chosen = _words("CC")
    for command in (chosen,) if chosen else ([name] for name in _COMPILERS):
        found = shutil.which(command[0])
        if found:
            return [found, *command[1:]]
    raise KernelError(f"no C compiler ({chosen[0] if chosen else ', '.join(_COMPILERS)}) is on the PATH; install gcc")


def _for_this_cpu(compiler: list[str], flags: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """``flags`` with those for this CPU, and the macros that the compiler then defines: one for each thing it may use."""
    chosen = any(flag.startswith(("-march=", "-mcpu=")) for flag in flags)
    refusals = []
    for native in ((),) if chosen else _THIS_CPU:
        try:
            usable = _ran([*compiler, *flags, *native, "-dM", "-E", "-x", "c", os.devnull], _LONGEST_ANSWER_S)
            return (*flags, *native), usable
        except KernelError as refusal:
            refusals.append(refusal)
    raise refusals[0]


def _compiled(compiler: list[str], flags: tuple[str, ...], sources: list[Path]) -> bytes:
    """The library's bytes; the sources are compiled on all cores."""

    def object_of(source: Path) -> str:
        made = Path(scratch) / f"{source.stem}.o"
        _ran([*compiler, *flags, "-c", "-o", str(made), str(source)], _LONGEST_COMPILATION_S)
        return str(made)

    try:
        with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
            made = Path(scratch) / "kernels.so"
            objects = pool.map(object_of, sources)
            _ran([*compiler, *flags, "-shared", "-o", str(made), *objects, *_LIBRARIES], _LONGEST_COMPILATION_S)
            return made.read_bytes()
    except OSError as error:
        raise KernelError(f"{compiler[0]}: left no library ({error}); set TMPDIR to a folder with room, or CC") from error


def _ran(command: list[str], limit_s: int) -> str:
    """The standard output of a compiler. Raises KernelError with its first error."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False,
            timeout=limit_s, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise KernelError(f"{command[0]}: no answer within {limit_s} s; install gcc, or set CC") from error
    except OSError as error:
        raise KernelError(f"{command[0]}: cannot be run ({error}); install gcc, or set CC") from error
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or [*done.stderr.splitlines(), "no message"]
        raise KernelError(f"{command[0]}: exit code {done.returncode}: {errors[0]}; install a current gcc, or set CC")
    return done.stdout
