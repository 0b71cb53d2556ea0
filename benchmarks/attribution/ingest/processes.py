"""Device and correlation ids of a trace of several processes: each process counts both from its own zero."""

from __future__ import annotations

import numpy as np

from ..events import Int32, Int64
from .columns import device_ids
from .sqlite_columns import Database


class Processes:
    """Makes the ids of one export unique."""

    def __init__(self, database: Database) -> None:
        self._path = database.path
        self._gpu: dict[tuple[int, int], int] = {}
        if database.has("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid"):
            rows = database.connection.execute("SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE")
            self._gpu = {(pid, cuda): gpu for pid, cuda, gpu in rows if gpu is not None}
        self._index: dict[int, int] = {}

    def devices(self, device: Int64, global_id: Int64 | None) -> Int32:
        """The GPU's own id for the id that a process gave it (CUDA_VISIBLE_DEVICES renumbers)."""
        out = device_ids(device, self._path)
        if global_id is None or not len(device) or all(cuda == gpu for (_, cuda), gpu in self._gpu.items()):
            return out
        for pid in np.unique(_pid(global_id)).tolist():
            rows = _pid(global_id) == pid
            for cuda in np.unique(device[rows]).tolist():
                out[rows & (device == cuda)] = self._gpu.get((pid, cuda), cuda)
        return out

    def correlations(self, correlation: Int64, global_id: Int64 | None) -> Int64:
        """Correlation ids that no two processes share; 0 and less link nothing and stay."""
        if global_id is None or not len(correlation):
            return correlation
        pids, which = np.unique(_pid(global_id), return_inverse=True)
        index = np.array([self._index.setdefault(pid, len(self._index)) for pid in pids.tolist()], dtype=np.int64)
        return np.where(correlation <= 0, correlation, correlation + (index[which] << 40))


def _pid(global_id: Int64) -> Int64:
    return (global_id >> 24) & 0xFFFFFF
