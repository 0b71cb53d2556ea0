"""What the first page needs, loaded while the server starts and the reader's browser still loads Streamlit's own page."""

from __future__ import annotations

import gc
import sys
import threading

from .configuration import Settings

_thread: threading.Thread | None = None


def start(found: Settings) -> None:
    """Begin to load, in a thread of its own."""
    global _thread
    _thread = threading.Thread(target=_load, args=(found,), name="warm", daemon=True)
    _thread.start()


def wait() -> None:
    """Return once all is loaded; at once where nothing was started. Two threads that import one library trip over it."""
    if _thread is not None:
        _thread.join()


_TURN_SECONDS = 0.0005
"""How long the loading thread keeps the interpreter while the server is asked for its sixty scripts: Python's own 5 ms for
each of a request's steps would add up to half a second."""


def _load(found: Settings) -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    gc.disable()  # hardly anything of what is loaded is let go again
    try:
        _load_all(found)
    finally:
        # What is loaded by now stays: later collections need not look at a million objects of libraries again.
        gc.freeze()
        gc.enable()
        sys.setswitchinterval(usual)


def _load_all(found: Settings) -> None:
    from . import session  # noqa: F401 (with what it imports in turn)
    from .data import reader_of

    results = reader_of(found.results).current() if found.results.is_dir() else None
    if results is not None and not results.walls.empty:
        _load_overview()
    elif results is not None:  # asv's results alone: Explore comes first
        _ = (results.commits, results.measured_series)


def _load_overview() -> None:
    import numpy as np

    from benchmarks.attribution.statistics.alarms import find_alarms

    from . import examine, summary  # noqa: F401

    find_alarms(np.zeros((1, 16)))  # the first history that is asked for changes builds the tables of their thresholds
