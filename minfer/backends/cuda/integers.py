"""Products on the int8 matrix units: activations quantised to q8_1, weights as they are stored."""

from __future__ import annotations

from . import launch
from .arrays import Arena, DeviceArray
from .device import Device

MMQ_TYPES = frozenset(("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_K", "q5_K", "q6_K", "iq4_nl", "iq4_xs"))
"""Types that kernels/integers.cuh knows."""


def mmq(device: Device, arena: Arena, kind: str, weights: int, x: DeviceArray, out: DeviceArray) -> None:
    """out [m, n] = x [m, k] times the transpose of a matrix of ``kind``, one of MMQ_TYPES; k is a multiple of 32."""
    m, k = x.shape
    if "mmq" not in x.quantised:
        x.quantised["mmq"] = arena.take((m, k), "u8"), arena.take((m, k // 32, 2), "f32")
        launch.quantise(device, x, *x.quantised["mmq"])
    q, scales = x.quantised["mmq"]
    launch.mmq(device, kind, weights, q, scales, out, x.scale)


def bt(device: Device, arena: Arena, weights: int, x: DeviceArray, out: DeviceArray) -> None:
    """out [m, n] = x [m, k] times the transpose of a q4_K matrix."""
    m, k = x.shape
    padded = -(-m // 128) * 128
    if "bt" not in x.quantised:
        x.quantised["bt"] = arena.take((padded, k), "u8"), arena.take((k // 32, padded, 2), "f32")
        launch.quantise_bt(device, x, *x.quantised["bt"])
    q, scales = x.quantised["bt"]
    launch.bt(device, weights, q, scales, out, x.scale)
