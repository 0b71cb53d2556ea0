"""Matrix-vector products of one input, gathered into one launch: queries, keys and values; gate and up.

At a decode step a launch takes a microsecond to begin and its last blocks leave the GPU idle, and there are seven a layer.
"""

from __future__ import annotations

from . import launch
from .arrays import DeviceArray
from .device import Device
from .launch import Product

MOST = 3
"""Products of a launch."""


class VectorProducts:
    """Products of few rows. In a pass where nobody watches single operations they are held back until one cannot join."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._input: DeviceArray | None = None
        self._held: list[Product] = []
        self.gathers = False

    def __call__(self, kind: str, weights: int, x: DeviceArray, out: DeviceArray, bias: DeviceArray | None) -> None:
        """out [m, n] = x [m, k] times the transpose of the matrix of ``kind`` at ``weights``, plus ``bias``."""
        if not self.gathers or kind not in launch.GROUPED or out.dtype != "f16":
            launch.mmv(self._device, kind, weights, x, out, bias)
            return
        if self._held and (x is not self._input or len(self._held) == MOST):
            self._device.release()
        self._held.append(Product(kind, weights, out, bias))
        self._input = x
        self._device.hold(self._launch)

    def _launch(self) -> None:
        held, x = self._held, self._input
        self._held, self._input = [], None
        assert x is not None
        if len(held) == 1:
            launch.mmv(self._device, held[0].kind, held[0].weights, x, held[0].out, held[0].bias)
        else:
            launch.mmv_group(self._device, x, held)
