"""Forward passes kept as CUDA graphs: a few launches instead of several hundred.

What a pass launches depends on its key alone: addresses repeat (see ``Arena``), and the position is read on the device.
A graph starts when all of it has been submitted, so a short one goes first: the device works on it meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .arrays import Arena, DeviceArray
from .device import Device

_KEPT = 16
"""Graphs held; the one that was not used for longest goes first."""
_SEEN = 256
_PARTS = (1, 2, 5)
"""Layers at whose attention a graph ends and the next one begins; a pass of fewer layers is fewer graphs.

Each part must be submitted while the one before it runs: under a tracer a graph takes 50 us and another for each node.
"""


class Graphs:
    """Runs passes, and learns those that come again."""

    def __init__(self, device: Device, arena: Arena) -> None:
        self._device, self._arena = device, arena
        self._graphs: OrderedDict[Hashable, tuple[Sequence[Any], DeviceArray | None]] = OrderedDict()
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._ended: list[Any] | None = None
        self._layers = 0

    def run(self, key: Hashable, body: Callable[[], DeviceArray | None], *, eager: bool) -> DeviceArray | None:
        """``body``'s result. A key is captured when it comes the second time, or at once where ``eager``.

        The first time it always runs launch by launch: that loads kernels and makes memory, which a capture may not do.
        """
        if key in self._graphs:
            self._graphs.move_to_end(key)
            return self._launch(key)
        before = self._arena.mark()
        if key not in self._seen:
            result = body()
            self._remember(key)
            if eager:
                # The same addresses again: the result that was just computed stays where it is.
                self._arena.release(before)
                self._capture(key, body)
            return result
        self._capture(key, body)
        return self._launch(key)

    def layer(self) -> None:
        """A layer's attention is queued: the one point of each layer where a pass that is captured may be divided."""
        if self._ended is None:
            return
        self._layers += 1
        if self._layers in _PARTS:
            self._device.release()
            self._ended.append(self._device.stream.end_capture())
            self._device.stream.begin_capture()

    def _launch(self, key: Hashable) -> DeviceArray | None:
        graphs, result = self._graphs[key]
        for graph in graphs:
            graph.launch(self._device.stream)
        return result

    def _remember(self, key: Hashable) -> None:
        self._seen[key] = None
        if len(self._seen) > _SEEN:
            self._seen.popitem(last=False)

    def _capture(self, key: Hashable, body: Callable[[], DeviceArray | None]) -> None:
        stream = self._device.stream
        ended = self._ended = []
        self._layers = 0
        stream.begin_capture()
        try:
            result = body()
        finally:
            self._ended = None
            ended.append(stream.end_capture())
        self._graphs[key] = ended, result
        if len(self._graphs) > _KEPT:
            self._graphs.popitem(last=False)
