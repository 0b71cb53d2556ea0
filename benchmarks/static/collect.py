"""All kernels of one checkout, compiled by that checkout's own compiler call and read; kept under the cubins' hash."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ..attribution.errors import UserFacingError
from .facts import KernelFacts, from_json, to_json
from .sass import read_cubin

TARGETS = ("sm_80", "sm_90a", "sm_120", "sm_121")
READER_VERSION = 1
"""Part of the name of a kept reading: raise it when a reading changes its meaning."""


class NoKernelsError(UserFacingError):
    """The commit has no kernels, or none that compile."""


def collect(checkout: Path, targets: Sequence[str] = TARGETS) -> list[KernelFacts]:
    """The facts of every kernel in ``checkout`` for each target. Raises NoKernelsError, StaticToolError."""
    if not (checkout / "minfer" / "kernels" / "__main__.py").is_file():
        raise NoKernelsError(f"{checkout}: no minfer/kernels: this commit has no CUDA kernels yet; name a later one")
    # The measured commit compiles its own kernels with its own options: the cubins are those that its engine loads.
    done = subprocess.run(
        [sys.executable, "-m", "minfer.kernels", *targets],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1]
        raise NoKernelsError(f"{checkout.name}: kernels do not compile: {said}")
    cubins = [json.loads(line) for line in done.stdout.splitlines()]
    # The tools are processes of their own, so threads keep all cores busy.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        read = pool.map(_facts_of, cubins)
        return sorted((facts for several in read for facts in several), key=lambda facts: facts.key)


def _facts_of(cubin: dict[str, str]) -> list[KernelFacts]:
    path = Path(cubin["path"])
    kept = path.with_suffix(f".facts{READER_VERSION}.json")
    if kept.is_file():
        return [from_json(stored) for stored in json.loads(kept.read_text(encoding="utf-8"))]
    facts = read_cubin(path, Path(cubin["log"]), cubin["source"], cubin["target"])
    half = kept.with_suffix(f".{os.getpid()}")
    half.write_text(json.dumps([to_json(one) for one in facts]), encoding="utf-8")
    half.replace(kept)
    return facts


@contextmanager
def exported(repository: Path, revision: str) -> Iterator[Path]:
    """The engine's Python and its kernels as they were at ``revision``, in a folder that goes away."""
    done = subprocess.run(
        ["git", "-C", str(repository), "archive", "--format=tar", revision, "--", "minfer", "kernels"],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.decode(errors="replace").strip() or "no output").splitlines()[0]
        raise NoKernelsError(f"revision {revision}: {said}; name a commit that has minfer/ and kernels/")
    with TemporaryDirectory(prefix="minfer-static-") as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            # Python 3.11 before 3.11.4 has no filters; what git itself archives holds no path that leaves the folder.
            if hasattr(tarfile, "data_filter"):
                archive.extractall(folder, filter="data")
            else:
                archive.extractall(folder)
        yield Path(folder)
