"""Writing whole files, with what the disk refuses as one line for the user."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..attribution.errors import UserFacingError
from ..attribution.whole_files import replacing
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
    """Write all of it or nothing. A device or pipe is written as it is."""
    with disk_errors(what, path):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
