"""Every product with a weight matrix: where the matrix lies, and which way the product goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...gguf import Tensor
from .. import Gates, Matrix
from . import fused, launch
from .arrays import Arena, DeviceArray
from .device import Device
from .integers import MMQ_TYPES, bt, mmq
from .linear import DeviceMatrix, F16Products, keep_dense, upload_matrix
from .vectors import VectorProducts


class Products:
    """Uploads matrices and multiplies by them; knows the bytes that both take."""

    def __init__(self, device: Device, arena: Arena, gates: Gates) -> None:
        self._device, self._arena, self._gates = device, arena, gates
        self.f16 = F16Products(device)
        self._vectors = VectorProducts(device)
        self._weights = self._dense = 0

    def upload(self, tensor: Tensor) -> DeviceMatrix:
        """``tensor`` as it is stored, and where gate ``dense`` says so its f16 copy."""
        data = upload_matrix(self._device, tensor)
        self._weights += data.nbytes
        if self._gates["dense"]:
            keep_dense(self._device, tensor, data)
            self._dense += 0 if data.dense is None else data.dense.nbytes
        return data

    def __call__(self, weight: Matrix, x: DeviceArray, bias: DeviceArray | None) -> DeviceArray:
        """x [m, k] times the weight's transpose: [m, n]. The bias is added, or left to the next reader."""
        data: DeviceMatrix = weight.data
        out = self._arena.take((x.shape[0], weight.n), "f32" if data.wide else "f16")
        if x.shape[0] <= launch.FEW_ROWS:
            self._vectors(data.kind, data.pointer, x, out, bias)
            return out
        if self._gates["bt"] and data.kind == "q4_K" and weight.n % 2 == 0:
            bt(self._device, self._arena, data.pointer, x, out)
        elif self._gates["mmq"] and data.kind in MMQ_TYPES and weight.k % 32 == 0 and weight.n % 2 == 0:
            mmq(self._device, self._arena, data.kind, data.pointer, x, out)
        elif self._fuses(data, x.shape[0], weight):
            fused.fused(self._device, data.kind, data.pointer, x, out)
        elif data.dense is not None:
            self.f16("f16", data.dense.pointer, weight.n, x, out)
        else:
            self.f16(data.kind, data.pointer, weight.n, x, out)
        out.bias = bias
        return out

    def _fuses(self, data: DeviceMatrix, m: int, weight: Matrix) -> bool:
        if not self._gates["fused"] or data.wide or data.dense is not None:
            return False
        return fused.can(self._device, data.kind, weight.n, weight.k) and fused.pays(m, weight.n)

    @contextmanager
    def gathering(self, few: bool) -> Iterator[None]:
        """Products of ``few`` rows may share launches inside; all are queued at the end."""
        self._vectors.gathers = few
        try:
            yield
        finally:
            self._vectors.gathers = False
            self._device.release()

    def memory(self) -> dict[str, int]:
        """Bytes by purpose."""
        return {
            "device weights": self._weights,
            "dequantised weights": self._dense,
            "scratch f16": self.f16.scratch_bytes,
            "cublas workspace": self.f16.workspace_bytes,
        }
