"""A mixture of experts, all of it on the device: its passes are graphs like any other."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import Gates, Matrix
from . import expert_fused, launch
from .arrays import Arena, DeviceArray
from .device import Device
from .linear import DeviceMatrix

_FULL_TILE = 64
"""Choices an expert from which the larger tile pays, on average: each tile decodes its expert's weights anew (H200)."""


@dataclass(frozen=True, slots=True)
class Routing:
    """The experts of each token, i32 [m, used], and their weights, f32 [m, used].

    For many tokens, what belongs to a choice lies in the order of the choices' experts; for few, token after token.
    """

    chosen: DeviceArray
    weights: DeviceArray
    order: DeviceArray | None
    """i32 [m * used], where choices are in that order; ``place`` leads back."""
    place: DeviceArray | None
    tiles: dict[int, DeviceArray] = field(default_factory=dict)
    """Of one expert each, by the number of choices that they hold at most."""
    rows: dict[int, DeviceArray] = field(default_factory=dict)
    """Tokens' activations in the order of the choices, by the address that they came from."""


class Experts:
    """Routes tokens to experts and multiplies each by those that it was sent to."""

    def __init__(self, device: Device, arena: Arena, gates: Gates) -> None:
        self._device, self._arena, self._gates = device, arena, gates

    def route(self, scores: DeviceArray, used: int) -> Routing:
        """The ``used`` highest of each token's scores f32 [m, experts], and the softmax over them."""
        m = scores.shape[0]
        chosen, weights = self._arena.take((m, used), "i32"), self._arena.take((m, used), "f32")
        launch.router_top(self._device, scores, chosen, weights)
        if m <= launch.FEW_ROWS:
            return Routing(chosen, weights, None, None)
        return Routing(chosen, weights, self._arena.take((m * used,), "i32"), self._arena.take((m * used,), "i32"))

    def products(self, weight: Matrix, x: DeviceArray, routing: Routing) -> DeviceArray:
        """Each token's x [m, k], or each choice's x [m, used, k], through its experts: f16 [m, used, n]."""
        data: DeviceMatrix = weight.data
        experts, n, k = weight.tensor.shape
        m, used = routing.chosen.shape
        out = self._arena.take((m * used, n), "f16")
        per_token, rows = len(x.shape) == 2, x.reshape(-1, k)
        if routing.order is None:
            launch.expert_mmv(self._device, data.kind, data.pointer, rows, routing.chosen, out)
            return out.reshape(m, used, n)
        tokens = self._fused_tile(data.kind, m * used, experts, n, k)
        if tokens is not None:
            tiles = self._tiles(routing, experts, tokens)
            rows = self._ordered(routing, rows) if per_token else rows
            expert_fused.product(self._device, data.kind, data.pointer, experts, rows, tiles, tokens, out)
        else:
            tokens = tile_for(data.kind, m * used, experts)
            tiles = self._tiles(routing, experts, tokens)
            share = used if per_token else 0
            launch.expert_gemm(self._device, data.kind, data.pointer, rows, routing.order, tiles, tokens, share, out)
        return out.reshape(m, used, n)

    def _fused_tile(self, kind: str, choices: int, experts: int, n: int, k: int) -> int | None:
        if not self._gates["fused"] or not expert_fused.can(self._device, kind, n, k):
            return None
        return expert_fused.tile_for(choices, experts, n, k, self._device.multiprocessors)

    def _tiles(self, routing: Routing, experts: int, tokens: int) -> DeviceArray:
        """Made once for all products of a routing that take tiles of so many choices."""
        assert routing.order is not None
        assert routing.place is not None
        if tokens not in routing.tiles:
            tiles = self._arena.take((routing.order.size // tokens + experts, 4), "i32")
            launch.router_group(self._device, routing.chosen, routing.order, routing.place, tiles, experts, tokens)
            routing.tiles[tokens] = tiles
        return routing.tiles[tokens]

    def _ordered(self, routing: Routing, rows: DeviceArray) -> DeviceArray:
        """A row for each choice, made once for all products of the same activations."""
        assert routing.order is not None
        if rows.pointer not in routing.rows:
            ordered = self._arena.take((routing.order.size, rows.shape[1]), "f16")
            launch.router_rows(self._device, rows, routing.order, ordered)
            ordered.scale = rows.scale
            routing.rows[rows.pointer] = ordered
        return routing.rows[rows.pointer]

    def combine(self, y: DeviceArray, routing: Routing) -> DeviceArray:
        """Sum of each token's y [m, used, n], weighted: [m, n]."""
        out = self._arena.take((y.shape[0], y.shape[2]), "f16")
        launch.combine(self._device, y, routing.place, routing.weights, out)
        return out


def tile_for(kind: str, choices: int, experts: int) -> int:
    """Choices of a tile of ``launch.expert_gemm`` that suit matrices stored as ``kind``."""
    return launch.expert_tiles(kind)[-1 if choices >= _FULL_TILE * experts else 0]
