"""Noise with the shape of real timings: heavy tails, two levels, autocorrelation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FILE = Path(__file__).with_name("noise.npz")


class RealNoise:
    """Factors around 1 drawn from real log-residuals in blocks of 32 neighbours of one history."""

    def __init__(self, seed: int, block: int = 32) -> None:
        with np.load(_FILE) as file:
            self._residuals = file["residuals"].astype(np.float64) * 1e-4
        self._rng = np.random.default_rng(seed)
        self._block = block

    def factors(self, count: int, spread: float | None = None) -> NDArray[np.float64]:
        """``count`` factors of one series. ``spread`` rescales its median absolute residual; None leaves it as it was.

        Rescaled series keep the shape of their tails; no factor is under 0.5 or over 3.
        """
        row = self._residuals[self._rng.integers(self._residuals.shape[0])]
        blocks = -(-count // self._block)
        starts = self._rng.integers(0, row.shape[0] - self._block, size=blocks)
        drawn = np.concatenate([row[start : start + self._block] for start in starts])[:count]
        if spread is not None:
            typical = float(np.median(np.abs(row))) or 1e-3
            drawn = drawn * (spread / typical)
        return np.clip(np.exp(drawn), 0.5, 3.0)
