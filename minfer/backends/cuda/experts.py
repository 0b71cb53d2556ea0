"""A mixture of experts: which of them each token needs is decided on the host, their products run here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import Matrix
from . import launch
from .arrays import Arena, DeviceArray
from .device import Device
from .linear import DeviceMatrix, F16Products


@dataclass(frozen=True, slots=True)
class Routing:
    """Experts of each token, on the host, and their weights f32 [m, used], on the device."""

    experts: NDArray[np.int64]
    weights: DeviceArray


def route(device: Device, arena: Arena, scores: NDArray[np.float32], used: int) -> Routing:
    """The ``used`` highest of each token's scores [m, experts], and the softmax over them."""
    chosen = np.argsort(-scores, axis=-1, kind="stable")[:, :used]
    weights = np.exp(np.take_along_axis(scores, chosen, -1) - np.take_along_axis(scores, chosen[:, :1], -1))
    weights /= weights.sum(axis=-1, keepdims=True)
    device_weights = arena.take(weights.shape, "f32")
    device.upload(device_weights.pointer, np.ascontiguousarray(weights, np.float32))
    return Routing(chosen, device_weights)


def products(
    device: Device, arena: Arena, f16: F16Products, weight: Matrix, x: DeviceArray, routing: Routing
) -> DeviceArray:
    """Each token's x [m, k], or each choice's x [m, used, k], through its experts: [m, used, n]. One expert at a time."""
    data: DeviceMatrix = weight.data
    experts, n, k = weight.tensor.shape
    m, used = routing.experts.shape
    out = arena.take((m * used, n), "f16")
    per_token = len(x.shape) == 2
    rows_in = x.reshape(-1, k)
    for expert in np.unique(routing.experts):
        token, slot = np.nonzero(routing.experts == expert)
        slots = (token * used + slot).astype(np.int32)
        before = arena.mark()
        to = _uploaded(device, arena, slots)
        source = _uploaded(device, arena, token.astype(np.int32)) if per_token else to
        gathered = arena.take((len(slots), k), "f16")
        launch.move_rows(device, "gather", rows_in, source, gathered)
        gathered.scale = x.scale
        product = arena.take((len(slots), n), "f16")
        f16(data.kind, data.pointer + int(expert) * (data.nbytes // experts), n, gathered, product)
        launch.move_rows(device, "scatter", product, to, out)
        arena.release(before)
    return out.reshape(m, used, n)


def _uploaded(device: Device, arena: Arena, host: NDArray[np.int32]) -> DeviceArray:
    array = arena.take(host.shape, "i32")
    device.upload(array.pointer, np.ascontiguousarray(host))
    return array
