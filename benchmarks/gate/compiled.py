"""The static side of the CI gate: what the compiler made of the kernels of both commits. Exact, so any rise is a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..attribution.errors import UserFacingError
from ..static.collect import collect
from ..static.facts import Change, changes
from .repository import Repository, Revision

SOURCES = ("kernels", "minfer/kernels")
"""What decides how a kernel compiles. Where none of it differs, neither do the cubins."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What differs between the two commits' cubins."""

    changes: tuple[Change, ...] = ()
    skipped: str = ""
    """Why nothing was compared; empty where it was."""

    @property
    def worse(self) -> tuple[Change, ...]:
        """Each of these alone makes the gate red."""
        return tuple(change for change in self.changes if change.worse)


def compare_compiled(
    repository: Repository, base: Revision, head: Revision, checkouts: Mapping[str, Path]
) -> Compiled:
    """Compile the kernels of both checkouts, if any source of theirs differs, and compare what came out.

    Raises UserFacingError where head's kernels do not compile. A base without kernels, and a machine without the compiler
    wheels, are reasons to skip it, which the report states.
    """
    if not any((checkouts["head"] / source).exists() for source in SOURCES):
        return Compiled(skipped="head has no CUDA kernels")
    if not repository.git("diff", "--name-only", base.commit, head.commit, "--", *SOURCES):
        return Compiled(skipped="no kernel source differs")
    try:
        before = collect(checkouts["base"])
    except UserFacingError as error:
        return Compiled(skipped=f"base: {error}")
    return Compiled(tuple(changes(before, collect(checkouts["head"]))))
