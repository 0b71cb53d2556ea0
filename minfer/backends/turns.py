"""Cosines and sines of the rotary angles, computed once per position instead of once per layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..rotary import Rotary

Float32 = NDArray[np.float32]


class Turns:
    """One table per rotation, extended (by doubling) as far as positions have been asked for. Angles are float64."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[Rotary, Float32, Float32]] = {}

    @property
    def nbytes(self) -> int:
        return sum(int(cosine.nbytes + sine.nbytes) for _, cosine, sine in self._tables.values())

    def at(self, rotary: Rotary, start: int, stop: int) -> tuple[Float32, Float32]:
        """Cosines and sines [positions, 1, pairs] of positions start to stop - 1, times the rotation's magnitude."""
        known = self._tables.get(id(rotary))
        if known is None or len(known[1]) < stop:
            angles = np.outer(np.arange(max(stop, 0 if known is None else 2 * len(known[1]))), rotary.frequencies)
            cosine = (np.cos(angles) * rotary.magnitude).astype(np.float32)[:, None, :]
            sine = (np.sin(angles) * rotary.magnitude).astype(np.float32)[:, None, :]
            # The table holds the rotation, so that its id is not given to another one.
            known = self._tables[id(rotary)] = (rotary, cosine, sine)
        return known[1][start:stop], known[2][start:stop]
