"""What the detector study feeds its detectors: noise of known kinds, and quiet stretches of real histories."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

KINDS = ("gaussian", "student t3", "two levels", "two levels, one in ten", "lognormal")
"""The three of the bar, and two harder ones."""
STRETCH, SMOOTH = 150, 15
QUIET_RANGE = 0.02


def noise(kind: str, rng: np.random.Generator, series: int, points: int) -> np.ndarray:
    """Noise of standard deviation 1: shape (series, points)."""
    shape = (series, points)
    if kind == "gaussian":
        return rng.standard_normal(shape)
    if kind == "student t3":
        return rng.standard_t(3, shape) / np.sqrt(3)
    if kind == "lognormal":
        return (rng.lognormal(0, 1, shape) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
    share = 0.5 if kind == "two levels" else 0.1
    levels = (rng.random(shape) < share) + 0.02 * rng.standard_normal(shape)
    return (levels - share) / np.sqrt(share * (1 - share) + 0.0004)


def autoregressive(rho: float, rng: np.random.Generator, series: int, points: int) -> np.ndarray:
    """AR(1) noise of standard deviation 1, from its stationary distribution: shape (series, points)."""
    values = rng.standard_normal((series, points))
    for at in range(1, points):
        values[:, at] = rho * values[:, at - 1] + np.sqrt(1 - rho**2) * values[:, at]
    return values


@dataclass(frozen=True)
class Stretch:
    series: str
    start: int
    values: np.ndarray
    range: float
    """(largest - smallest running median of 15 points) / median: how far the level wandered."""


def quiet_stretches(file: Path) -> tuple[list[Stretch], int]:
    """Of each history the 150 points whose running median wanders least, if at most 2 %; and the histories read.

    No detector takes part in the choice. A median over 15 points does not follow single outliers and does follow steps.
    """
    histories: dict[str, list[float]] = {}
    with gzip.open(file, "rt", encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            histories.setdefault(row["series"], []).append(float(row["seconds"]))
    found = []
    for name, seconds in histories.items():
        values = np.array(seconds)
        running = np.median(np.lib.stride_tricks.sliding_window_view(values, SMOOTH), axis=1)
        inside = np.lib.stride_tricks.sliding_window_view(running, STRETCH - SMOOTH + 1)
        wander = np.ptp(inside, axis=1) / np.median(inside, axis=1)
        start = int(np.argmin(wander))
        if wander[start] <= QUIET_RANGE:
            found.append(Stretch(name, start, values[start : start + STRETCH], float(wander[start])))
    return found, len(histories)
