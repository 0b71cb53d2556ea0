"""Forward passes kept as CUDA graphs: one launch instead of several hundred.

What a pass launches depends on its key alone: addresses repeat (see ``Arena``), and the position is read on the device.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from .arrays import Arena, DeviceArray
from .device import Device

_KEPT = 16
"""Graphs held; the one that was not used for longest goes first."""
_SEEN = 256


class Graphs:
    """Runs passes, and learns those that come again."""

    def __init__(self, device: Device, arena: Arena) -> None:
        self._device, self._arena = device, arena
        self._graphs: OrderedDict[Hashable, tuple[Any, DeviceArray | None]] = OrderedDict()
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    def run(self, key: Hashable, body: Callable[[], DeviceArray | None], *, eager: bool) -> DeviceArray | None:
        """``body``'s result. A key is captured when it comes the second time, or at once where ``eager``.

        The first time it always runs launch by launch: that loads kernels and makes memory, which a capture may not do.
        """
        if key in self._graphs:
            self._graphs.move_to_end(key)
            graph, result = self._graphs[key]
            graph.launch(self._device.stream)
            return result
        before = self._arena.mark()
        if key not in self._seen:
            result = body()
            self._remember(key)
            if eager:
                # The same addresses again: the result that was just computed stays where it is.
                self._arena.release(before)
                self._capture(key, body)
            return result
        result = self._capture(key, body)
        self._graphs[key][0].launch(self._device.stream)
        return result

    def _remember(self, key: Hashable) -> None:
        self._seen[key] = None
        if len(self._seen) > _SEEN:
            self._seen.popitem(last=False)

    def _capture(self, key: Hashable, body: Callable[[], DeviceArray | None]) -> DeviceArray | None:
        stream = self._device.stream
        stream.begin_capture()
        try:
            result = body()
        finally:
            graph = stream.end_capture()
        self._graphs[key] = graph, result
        if len(self._graphs) > _KEPT:
            self._graphs.popitem(last=False)
        return result
