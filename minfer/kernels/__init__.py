"""Kernels: where their sources are, and how they become cubins or the CPU's library. Backends launch them."""

from __future__ import annotations

from pathlib import Path

from ..errors import MinferError


class KernelError(MinferError):
    """A kernel that cannot be found, compiled or loaded. One line: what, where, seen, expected, what to do."""


def sources_folder() -> Path:
    """The folder of the sources that belong to this very ``minfer``: its wheel's, else its checkout's ``kernels/``."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "kernel_sources", package.parent / "kernels"):
        if (folder / "common.cuh").is_file():
            return folder
    raise KernelError(
        f"kernel sources: neither {package / 'kernel_sources'} nor {package.parent / 'kernels'} holds common.cuh; "
        f"install minfer again"
    )
