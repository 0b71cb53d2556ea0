"""The detectors of the study behind one face: a series so far in, the indexes of its change points out."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import norm, rankdata

from benchmarks.attribution.statistics.alarms import find_alarms

Settings = tuple[float, ...]
Detect = Callable[[np.ndarray, Settings], list[list[int]]]


@dataclass(frozen=True)
class Detector:
    """A peer, called anew at each look: for each of its settings, strictest first, the indexes of the change points."""

    name: str
    detect: Detect
    settings: Settings
    default: float | None
    """The setting that its authors ship; None where they leave the choice to the user."""
    series: int
    """Series of the full study: fewer for the slower ones."""


def _otava(values: np.ndarray, settings: Settings) -> list[list[int]]:
    from otava.analysis import compute_change_points

    return [
        [int(point.index) for point in compute_change_points(list(values), window_len=50, max_pvalue=p)[0]] for p in settings
    ]


def _asv(values: np.ndarray, settings: Settings) -> list[list[int]]:
    """asv's steps; a setting drops those smaller than so many of its own error estimates (0: all that it finds)."""
    from asv.step_detect import detect_steps

    steps = detect_steps([float(value) for value in values])
    return [
        [
            after[0]
            for before, after in pairwise(steps)
            if abs(after[2] - before[2]) >= least * max(before[4], after[4])
        ]
        for least in settings
    ]  # fmt: skip


def _pelt(values: np.ndarray, penalties: list[float]) -> list[list[int]]:
    """PELT with an L2 cost, in ruptures' C version of it (KernelCPD with a linear kernel). Its last end is no change."""
    import ruptures

    fitted = ruptures.KernelCPD(kernel="linear", min_size=3).fit(values[:, None])
    return [list(fitted.predict(pen=penalty))[:-1] for penalty in penalties]


def _pelt_plain(values: np.ndarray, settings: Settings) -> list[list[int]]:
    variance = (np.median(np.abs(np.diff(values))) / 0.6745) ** 2 / 2
    scaled = values / max(np.sqrt(variance), 1e-300)
    return _pelt(scaled - np.median(scaled), list(settings))


def _normal_scores(values: np.ndarray) -> np.ndarray:
    return norm.ppf((rankdata(values) - 0.5) / len(values))


def _pelt_scores(values: np.ndarray, settings: Settings) -> list[list[int]]:
    return _pelt(_normal_scores(values), list(settings))


def _binseg_scores(values: np.ndarray, settings: Settings) -> list[list[int]]:
    import ruptures

    fitted = ruptures.Binseg(model="l2", jump=1, min_size=3).fit(_normal_scores(values))
    return [list(fitted.predict(pen=penalty))[:-1] for penalty in settings]


def peers() -> list[Detector]:
    """Every peer that can be imported here. Otava pins an old NumPy: ``pip install --no-deps apache-otava==0.8.0``."""
    found = [
        Detector("asv", _asv, (8, 6, 5, 4, 3, 2, 0), 0, 30),
        Detector("ruptures PELT", _pelt_plain, (120, 80, 60, 45, 30, 20, 12), None, 200),
        Detector("ruptures PELT on normal scores", _pelt_scores, (30, 24, 20, 18, 17, 16, 15, 13, 11, 9), None, 1000),
        Detector("ruptures Binseg on normal scores", _binseg_scores, (17,), None, 40),
    ]
    if importlib.util.find_spec("otava"):
        found.insert(1, Detector("otava", _otava, (1e-7, 1e-5, 1e-4, 1e-3), 1e-3, 30))
    return found


OURS = "this detector"
OUR_SCALES = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def alarms(detector: Detector, values: np.ndarray, first_look: int) -> list[bool]:
    """For each setting: whether some look from ``first_look`` points on, one point more each, sees a change anywhere."""
    hit = dict.fromkeys(detector.settings, False)
    for length in range(max(first_look, 10), len(values) + 1):
        quiet = tuple(setting for setting, seen in hit.items() if not seen)
        if quiet:
            for setting, found in zip(quiet, detector.detect(values[:length], quiet), strict=True):
                hit[setting] = bool(found)
    return list(hit.values())


def finds(detector: Detector, values: np.ndarray, lengths: range, place: int, near: int) -> list[bool]:
    """For each setting: whether some look at ``lengths`` points sees a change within ``near`` of ``place``."""
    seen = [detector.detect(values[:length], detector.settings) for length in lengths]
    near_by = [[any(abs(index - place) <= near for index in found) for found in look] for look in seen]
    return [any(column) for column in zip(*near_by, strict=True)]


def our_alarms(values: np.ndarray, first_look: int = 0, scale: float = 1.0) -> np.ndarray:
    """Which rows raise an alarm: shape (series,)."""
    hit = np.zeros(len(values), bool)
    for alarm in find_alarms(values, first_look, scale)[0]:
        hit[alarm.row] = True
    return hit


def our_finds(values: np.ndarray, place: int, near: int, first_look: int = 0, scale: float = 1.0) -> np.ndarray:
    """Which rows raise an alarm from ``place`` on that puts the change within ``near`` of it: shape (series,)."""
    hit = np.zeros(len(values), bool)
    for alarm in find_alarms(values, first_look, scale)[0]:
        hit[alarm.row] |= alarm.seen_at >= place and abs(alarm.index - place) <= near
    return hit
