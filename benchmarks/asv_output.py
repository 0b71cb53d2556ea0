"""What asv prints, without the tables of what went well: the command that ran it shows those figures better."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

_HEADER = re.compile(r"^(\[ *[0-9.]+%\] )?·+ ")
_RULER = re.compile(r"^(\[ *[0-9.]+%\] )?·+ =+")
GRACE_S = 5.0
_FINE = (" ok", " skipped", " n/a")


def without_tables(lines: Iterable[str]) -> Iterator[str]:
    """The lines of asv, less what follows a benchmark that is ok or skipped up to the next header.

    What follows any other header (a traceback, the table of a benchmark that failed in part) is kept whole.
    """
    fine = False
    for line in lines:
        if _HEADER.match(line) and not _RULER.match(line):
            fine = line.rstrip().endswith(_FINE)
            yield line
        elif not fine:
            yield line


def run_asv(command: Sequence[str], root: Path, environment: Mapping[str, str], out: TextIO, errors: TextIO) -> int:
    """asv's exit code. Its output goes to ``out`` as it comes, its standard error to ``errors`` when it has ended."""
    # Into a pipe Python would hold its lines back.
    unbuffered = {**environment, "PYTHONUNBUFFERED": "1"}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as kept,
        subprocess.Popen(
            command, cwd=root, env=unbuffered, stdout=subprocess.PIPE, stderr=kept, encoding="utf-8", errors="replace"
        ) as asv,
    ):
        assert asv.stdout is not None
        try:
            for line in without_tables(asv.stdout):
                out.write(line)
                out.flush()
        except BaseException:
            # Ctrl-C reached asv as well, which removes what it made for itself, and ends in a traceback that tells nobody
            # anything. It is ended from here only where it does not.
            try:
                asv.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                asv.kill()
            raise
        asv.wait()
        kept.seek(0)
        errors.write(kept.read())
    return asv.returncode
