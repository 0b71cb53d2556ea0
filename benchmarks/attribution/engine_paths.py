"""Which files of the checkout make the engine, and which of them a backend never runs."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch
from functools import lru_cache

ENGINE_PATHS = ("minfer", "kernels")
"""What can change a measurement; a commit that touches neither runs the same engine as its parent."""
NEVER_RUN = {
    "numpy": ("minfer/backends/cuda", "minfer/kernels/nvrtc.py", "kernels/*.cu", "kernels/*.cuh", "kernels/*.md"),
    "cuda": (
        "minfer/backends/numpy.py", "minfer/backends/native.py", "minfer/backends/cpu_kernels.py",
        "minfer/backends/attend.py", "minfer/backends/dense.py", "minfer/backends/pool.py",
        "minfer/kernels/host.py", "kernels/cpu", "kernels/*.md",
    ),
}  # fmt: skip
"""Files, folders and patterns of the engine by the backend that never runs them."""


@lru_cache(maxsize=65536)  # a history names the same few hundred paths thousands of times
def is_run(path: str, backend: str) -> bool:
    """Whether a change of ``path`` can reach what ``backend`` measures; yes where the backend is not known."""
    return not any(fnmatch(path, part) or path.startswith(f"{part}/") for part in NEVER_RUN.get(backend, ()))


def touches_engine(paths: Iterable[str], backend: str) -> bool:
    """Whether a commit that changed ``paths`` can reach what ``backend`` measures."""
    return any(path.startswith(tuple(f"{part}/" for part in ENGINE_PATHS)) and is_run(path, backend) for path in paths)
