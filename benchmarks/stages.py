"""Where a window's own time goes: each stage's ns, one stage after the other, so that they add up to the window."""

from __future__ import annotations

import time
from collections.abc import Callable

Say = Callable[[str], None]


class Stages:
    """Call it with a name and what follows is that stage's, until the next call; the name is also said as progress.

    A name that comes again goes on where it was.
    """

    def __init__(self, say: Say, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """``clock`` gives ns."""
        self.say = say
        """A line of progress that begins no stage."""
        self._clock = clock
        self._ns: dict[str, int] = {}
        self._stage: str | None = None
        self._since = 0

    def __call__(self, stage: str) -> None:
        self.say(stage)
        self._turn(stage)

    def ended(self) -> dict[str, int]:
        """End the last stage: ns by stage, in the order in which they first came."""
        self._turn(None)
        return dict(self._ns)

    def _turn(self, stage: str | None) -> None:
        now = self._clock()
        if self._stage is not None:
            self._ns[self._stage] = self._ns.get(self._stage, 0) + now - self._since
        self._stage, self._since = stage, now
