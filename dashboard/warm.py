"""What the first page needs, loaded while the server starts and the reader's browser still loads Streamlit's own page."""

from __future__ import annotations

import gc
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


def _load(found: Settings) -> None:
    import numpy as np

    from benchmarks.attribution.statistics.alarms import find_alarms

    from . import examine, session, summary  # noqa: F401 (with what they import in turn)
    from .data import reader_of

    if found.results.is_dir():
        reader_of(found.results).current()
    find_alarms(np.zeros((1, 16)))  # the first history that is asked for changes builds the tables of their thresholds
    # What is loaded by now stays: later collections need not look at a million objects of libraries again.
    gc.collect()
    gc.freeze()
