"""Slows one kernel class of the engine down by a known share: how the CI gate measures its own power on a real prefill."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..attribution.errors import UserFacingError
from ..engine import EngineOptions, MeasuredEngine


class SlowedEngine(MeasuredEngine):
    """The measured engine; operations of the named classes take ``share`` longer, traced or not.

    It works where the host runs the operation itself. On a GPU the host only launches it, so there it is refused.
    """

    def __init__(self, model: Path, options: EngineOptions, shares: Mapping[str, float]) -> None:
        super().__init__(model, options)
        self._shares = dict(shares)
        if self._shares and self.backend != "numpy":
            raise UserFacingError(f"backend {self.backend}: a slowdown can be injected on the CPU only")
        self.observe(None)

    def observe(self, observer: Any | None) -> None:
        super().observe(_Slowed(self._shares, observer) if self._shares else observer)


class _Slowed:
    """Lets an operation last longer before its observer, if there is one, hears of its end."""

    def __init__(self, shares: Mapping[str, float], inner: Any | None) -> None:
        self._shares = shares
        self._inner = inner
        self._began: list[int] = []

    def begin(self, operation: Any) -> None:
        if self._inner is not None:
            self._inner.begin(operation)
        self._began.append(time.perf_counter_ns())

    def end(self, operation: Any) -> None:
        began, ended = self._began.pop(), time.perf_counter_ns()
        until = ended + (ended - began) * self._shares.get(operation.kernel_class, 0.0)
        # Sleeping would hand the core to someone else and come back late: the wait has to be exact.
        while time.perf_counter_ns() < until:
            pass
        if self._inner is not None:
            self._inner.end(operation)
