"""Files that are either the old ones or the new ones, never half of one."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..attribution.errors import UserFacingError
from .exits import MachineUnfitError


@contextmanager
def disk_errors(what: str, path: Path) -> Iterator[None]:
    """Turn what the disk refuses in the body into the one line for the user."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise MachineUnfitError(f"{what}: no space left for {path}; free some and run again with --resume") from error
        raise UserFacingError(f"{what}: cannot write {path} ({error.strerror}); give a path that can be written") from error


def write_whole(path: Path, text: str, what: str) -> None:
    """Write through a temporary file beside it and a rename. A device or pipe is written as it is."""
    with disk_errors(what, path):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            # A temporary file is its owner's alone; what is measured is for whoever may read the folder.
            Path(temporary).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
