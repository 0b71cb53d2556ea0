"""What a record says of the weights, of which the digest takes seconds: it reads the whole file."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from .attribution.record import Model
from .engine import MeasuredEngine


class ModelOf:
    """An engine's model: asked for in a thread, if ``begin`` was called, else when it is wanted.

    It must be had before the first sample: the thread would be somebody else's work beside it.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._found: Future[Model] | None = None

    def begin(self, engine: MeasuredEngine) -> None:
        """Go on with it while other things are opened."""
        self._found = self._thread.submit(engine.model)

    def __call__(self, engine: MeasuredEngine) -> Model:
        """What the engine itself raises for an unreadable file passes through."""
        found = engine.model() if self._found is None else self._found.result()
        self._thread.shutdown()
        return found
