"""Progress out of processes whose output asv keeps to itself: a file that the waiting command shows as it grows."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

VARIABLE = "MINFER_PROGRESS"


_STARTED = time.monotonic()


def say(text: str) -> None:
    """One line of progress, with the seconds since this process began, to whoever waits."""
    path = os.environ.get(VARIABLE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{time.monotonic() - _STARTED:6.1f} s  {text}\n")


class Follow:
    """Shows the lines of a progress file while its body runs."""

    def __init__(self, path: Path, out: TextIO) -> None:
        self._path, self._out = path, out
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("", encoding="utf-8")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _follow(self) -> None:
        with self._path.open(encoding="utf-8") as file:
            while True:
                last_look = self._done.wait(0.3)
                for line in file:
                    print(f"    {line.rstrip()}", file=self._out, flush=True)
                if last_look:
                    return
