"""Static figures kept beside the records: one file a commit below ``results/static/``, whatever machine measured it.

What the compiler makes of a kernel depends on the commit, the target and the compiler, not on a machine; a screen joins the
figures to a record by commit, by the target of the record's GPU and by the kernel's name. A file is a header line, then one
kernel a line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ..attribution.errors import UserFacingError
from ..attribution.whole_files import replacing
from .facts import KernelFacts, from_json, to_json

FORMAT, VERSION = "minfer-static", 1
_GPUS = {"H200": "sm_90a", "H100": "sm_90a", "H20": "sm_90a", "GH200": "sm_90a", "A100": "sm_80", "A30": "sm_80"}
_GPUS |= {"RTX 50": "sm_120", "RTX PRO": "sm_120", "GB10": "sm_121"}


class StaticFileError(UserFacingError):
    """A file of static figures that cannot be read."""


@dataclass(frozen=True, slots=True)
class StaticFigures:
    """Everything that the compiler made of one commit's kernels."""

    commit: str
    compiler: str
    kernels: tuple[KernelFacts, ...]

    def of(self, target: str) -> dict[str, KernelFacts]:
        """Kernels by name, as a record's symbols name them."""
        return {facts.kernel: facts for facts in self.kernels if facts.target == target}


def static_path(results: Path, commit: str) -> Path:
    return results / "static" / f"{commit}.jsonl"


def compiler_version() -> str:
    """The installed NVRTC, as its package names itself."""
    try:
        return f"NVRTC {metadata.version('nvidia-cuda-nvrtc')}"
    except metadata.PackageNotFoundError:
        return "unknown"


def write_static(results: Path, figures: StaticFigures) -> Path:
    """Write a commit's file anew; a crash leaves the old one or the new one."""
    path = static_path(results, figures.commit)
    head = {"format": FORMAT, "version": VERSION, "commit": figures.commit, "compiler": figures.compiler}
    lines = [json.dumps(head), *(json.dumps(to_json(one), separators=(",", ":")) for one in figures.kernels)]
    with replacing(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read_static(path: Path) -> StaticFigures:
    """Raises StaticFileError with the file and what is wrong with it."""
    try:
        head, *lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
        if (head["format"], head["version"]) != (FORMAT, VERSION):
            raise StaticFileError(
                f"{path.name}: not {FORMAT} version {VERSION}; write it anew: python -m benchmarks static --store"
            )
        return StaticFigures(str(head["commit"]), str(head["compiler"]), tuple(from_json(line) for line in lines))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StaticFileError(f"{path.name}: cannot be read ({type(error).__name__}: {error}); write it anew") from error


def target_of(gpu: str | None, targets: Sequence[str]) -> str | None:
    """The target that this GPU's name stands for, if figures of it are there; None where nobody can say."""
    known = next((target for name, target in _GPUS.items() if gpu and name in gpu), None)
    return known if known in targets else None
