"""From ``.cu`` files to cubins, each compiled once and kept under a hash of everything that made it."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from . import KernelError, nvrtc, sources_folder

TARGETS = ("sm_80", "sm_90a", "sm_120", "sm_121")
"""What the kernels are written for: A100, H100 and H200, RTX 50, GB10."""

_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cubin:
    """One compiled source file."""

    source: str
    """Name without suffix: "attention"."""
    target: str
    path: Path
    log: Path
    """What ptxas said of each kernel: registers, stack, spills."""


def source_names(folder: Path | None = None) -> list[str]:
    """Names of all sources, without suffix, sorted."""
    return sorted(path.stem for path in (folder or sources_folder()).glob("*.cu"))


def cache_folder() -> Path:
    """Where cubins are kept: ``$MINFER_KERNEL_CACHE``, else ``minfer/cubins`` of the user's cache folder. Raises KernelError
    where the user has no home."""
    chosen = os.environ.get("MINFER_KERNEL_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minfer" / "cubins"
    except RuntimeError as error:
        raise KernelError(f"kernel cache: {error}; set MINFER_KERNEL_CACHE to a writable folder") from error


def target_of(major: int, minor: int) -> str:
    """The target that runs on compute capability ``major.minor``. Raises KernelError below 8.0."""
    if major < 8:
        raise KernelError(
            f"this GPU has compute capability {major}.{minor}, the kernels need 8.0 or newer "
            "(int8 and f16 matrix units, cp.async); "
            "run with backend numpy"
        )
    # Within a family newer chips run older cubins; sm_90a's own instructions exist on 9.0 only.
    if major == 9:
        return "sm_90a"
    return f"sm_{major}{minor}"


def options_for(target: str) -> tuple[str, ...]:
    """The compiler's options; part of the cache's key."""
    return (f"--gpu-architecture={target}", "--std=c++17", "--ptxas-options=-v")


def build(name: str, target: str, folder: Path | None = None) -> Cubin:
    """The cubin of source ``name`` for ``target``, from the cache or compiled now. Raises KernelError."""
    folder = folder or sources_folder()
    source, headers = _read(folder, name)
    cubin = _place(name, target, source, headers)
    if not _is_kept(cubin):
        code, log = nvrtc.compile_cubin(f"{name}.cu", source, headers, options_for(target))
        keep(cubin.log, log.encode())
        keep(cubin.path, code)
    return cubin


def _place(name: str, target: str, source: str, headers: Mapping[str, str]) -> Cubin:
    """Where the cubin of these texts is kept, whether or not it is there."""
    parts = (nvrtc.version(), *options_for(target), source, *headers, *headers.values())
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    stem = f"{name}-{target}-{key}"
    return Cubin(name, target, cache_folder() / f"{stem}.cubin", cache_folder() / f"{stem}.log")


def _is_kept(cubin: Cubin) -> bool:
    return cubin.path.is_file() and cubin.log.is_file()


def build_all(targets: Iterable[str], folder: Path | None = None) -> list[Cubin]:
    """Every source for each target, compiled on all cores where the cache lacks it."""
    folder = folder or sources_folder()
    jobs = [(name, target, folder) for name in source_names(folder) for target in targets]
    missing = [job for job in jobs if not _is_kept(_place(*job[:2], *_read(folder, job[0])))]
    if missing:
        # NVRTC holds a lock of its own, so threads would wait for each other.
        with ProcessPoolExecutor(min(len(missing), os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
            list(pool.map(_build_job, missing))
    return [build(*job) for job in jobs]


def _build_job(job: tuple[str, str, Path]) -> Cubin:
    return build(*job)


def _read(folder: Path, name: str) -> tuple[str, dict[str, str]]:
    """The text of a source, and of every header that it includes at any depth, by name."""
    path = folder / f"{name}.cu"
    if not path.is_file():
        raise KernelError(
            f"{path} does not exist; sources here: {', '.join(source_names(folder)) or 'none'}; install minfer again"
        )
    source = path.read_text(encoding="utf-8")
    headers: dict[str, str] = {}
    waiting = _INCLUDE.findall(source)
    while waiting:
        header = waiting.pop()
        if header not in headers:
            headers[header] = (folder / header).read_text(encoding="utf-8")
            waiting += _INCLUDE.findall(headers[header])
    return source, dict(sorted(headers.items()))


def keep(path: Path, content: bytes) -> None:
    """Write by renaming, so that nobody ever reads half a file, not after a crash either; all users may read it. A cache
    that cannot be written is an error, and nothing of the attempt stays."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise KernelError(
            f"kernel cache {path.parent}: {error.strerror or error}; set MINFER_KERNEL_CACHE to a writable folder"
        ) from error
