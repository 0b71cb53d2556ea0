"""Which change point detector to use, by measurement: ``python -m tools.detector_study --histories FOLDER``.

Writes docs/detectors/study.json, and the report and pictures made from it alone. Seeds are fixed: one checkout gives
one set of figures. ``--quick`` takes a twentieth of the series, to see that it runs. Peers not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attribution.statistics.binomial import rate
from benchmarks.attribution.statistics.change_points import aggregate, find_changes_in_many
from tools.study_detectors import (
    OUR_SCALES,
    OURS,
    Detector,
    alarms,
    finds,
    our_alarms,
    our_finds,
    peers,
)
from tools.study_figures import draw
from tools.study_noise import KINDS, Stretch, autoregressive, noise, quiet_stretches
from tools.study_report import render

POINTS, OUR_SERIES = 120, 10_000
HISTORIES, STEP_HISTORIES = (0, 60), (30, 50, 60, 80, 100)
STEPS = (1, 2, 3, 5, 7, 10)
REAL_FIRST, REAL_STEP, REAL_AFTER, NEAR = 60, 100, 10, 5


def counted(hits: Any) -> dict[str, float | int]:
    """A share with its 95 % Clopper-Pearson interval."""
    hits = list(map(bool, hits))
    share = rate(sum(hits), len(hits))
    return {"count": share.count, "of": share.trials, "share": share.value, "low": share.low, "high": share.high}


class Study:
    def __init__(self, pool: ProcessPoolExecutor, smaller: int) -> None:
        self.pool, self.smaller, self.ours = pool, smaller, OUR_SERIES // smaller
        self.peers = peers()

    def each(self, detector: Detector, look: Any, values: Any, base: dict[str, Any], most: int = 0) -> list[dict[str, Any]]:
        """One row a setting of a peer; ``look`` answers for one series and all settings."""
        count = most or max(10, detector.series // self.smaller)
        answers = list(self.pool.map(look, list(values)[:count], chunksize=2))
        return [
            {"detector": detector.name, "setting": setting, **base, **counted(hits)}
            for setting, hits in zip(detector.settings, zip(*answers, strict=True), strict=True)
        ]

    def rng(self, *names: object) -> np.random.Generator:
        return np.random.default_rng(list(repr(names).encode()))

    def quiet(self) -> list[dict[str, Any]]:
        """Share of series with any alarm while 120 points are appended."""
        rows = []
        for history in HISTORIES:
            for kind in KINDS:
                values = noise(kind, self.rng("quiet", kind, history), self.ours, history + POINTS)
                hits = our_alarms(values, first_look=history)
                rows.append({"detector": OURS, "setting": 1.0, "noise": kind, "history": history, **counted(hits)})
        for kind in KINDS[:3]:
            values = noise(kind, self.rng("quiet", kind, 0), self.ours, POINTS)
            for detector in self.peers:
                base = {"noise": kind, "history": 0}
                rows += self.each(detector, partial(alarms, detector, first_look=0), values, base)
            report(f"quiet noise, {kind}")
        return rows

    def steps(self) -> list[dict[str, Any]]:
        """Share of series in which a step of three sigma is found within five points after it."""
        rows = []
        for kind in KINDS[:3]:
            for history in STEP_HISTORIES:
                values = noise(kind, self.rng("step", kind, history), self.ours // 5, history + 5)
                values[:, history:] += 3
                hits = our_finds(values, history, near=history)
                base = {"noise": kind, "history": history}
                rows.append({"detector": OURS, "setting": 1.0, **base, **counted(hits)})
                if history != 80:
                    continue
                for detector in self.peers:
                    lengths = range(history + 1, history + 6)
                    look = partial(finds, detector, lengths=lengths, place=history, near=NEAR)
                    rows += self.each(detector, look, values, base)
        report("steps of three sigma")
        return rows

    def correlated(self) -> list[dict[str, Any]]:
        """Share of AR(0.5) series with any alarm while 120 points are appended."""
        rows = []
        for history in HISTORIES:
            values = autoregressive(0.5, self.rng("ar", history), self.ours // 4, history + POINTS)
            whole = [bool(changes) for changes in find_changes_in_many(list(values))]
            blocks = [bool(changes) for changes in find_changes_in_many([aggregate(row) for row in values])]
            base = {"noise": "AR(0.5)", "history": history}
            rows.append({"detector": OURS, "setting": 1.0, "how": "by the rule", **base, **counted(whole)})
            rows.append({"detector": OURS, "setting": 1.0, "how": "blocks of 4", **base, **counted(blocks)})
        values = autoregressive(0.5, self.rng("ar", 0), self.ours // 4, POINTS)
        for detector in self.peers:
            look = partial(alarms, detector, first_look=0)
            for how, series in (("as it is", values), ("blocks of 4", [aggregate(row) for row in values])):
                base = {"noise": "AR(0.5)", "history": 0, "how": how}
                rows += self.each(detector, look, series, base)
        report("AR(0.5)")
        return rows

    def placed(self) -> list[dict[str, Any]]:
        """Of the steps found: how near the place is, and whether the intervals hold the truth."""
        rows = []
        for size, before, after in ((3, 60, 8), (3, 60, 40), (2, 60, 60), (1, 100, 100)):
            values = 100 + noise("gaussian", self.rng("placed", size, after), self.ours // 20, before + after)
            values[:, before:] += size
            hits = [[c for c in found if c.seen_at >= before][:1] for found in find_changes_in_many(list(values))]
            first = [found[0] for found in hits if found]
            rows.append(
                {
                    "sigma": size, "before": before, "after": after, "found": counted(hits),
                    "within 2": counted(abs(c.index - before) <= 2 for c in first),
                    "place interval holds": counted(c.earliest <= before <= c.latest for c in first),
                    "mean place interval": float(np.mean([c.latest - c.earliest + 1 for c in first])),
                    "ratio interval holds": counted(c.shift.low <= 1 + size / 100 <= c.shift.high for c in first),
                }
            )  # fmt: skip
        return rows

    def real(self, stretches: list[Stretch]) -> list[dict[str, Any]]:
        """ROC points on real histories: alarms without a step, and steps of 1 to 10 % found ten points after them."""
        values = np.array([stretch.values for stretch in stretches])
        stepped = {}
        for step in STEPS:
            stepped[step] = values[:, : REAL_STEP + REAL_AFTER].copy()
            stepped[step][:, REAL_STEP:] *= 1 + step / 100
        rows = []
        for scale in OUR_SCALES:
            base = {"detector": OURS, "setting": scale}
            rows.append({**base, "step": 0, **counted(our_alarms(values, REAL_FIRST, scale))})
            for step, series in stepped.items():
                rows.append({**base, "step": step, **counted(our_finds(series, REAL_STEP, NEAR, REAL_FIRST, scale))})
        once = range(REAL_STEP + REAL_AFTER, REAL_STEP + REAL_AFTER + 1)
        for detector in self.peers:
            # The slow ones take every second stretch.
            thin = 2 if detector.series < 100 else 1
            quiet = partial(alarms, detector, first_look=REAL_FIRST)
            rows += self.each(detector, quiet, values[::thin], {"step": 0}, most=len(values))
            look = partial(finds, detector, lengths=once, place=REAL_STEP, near=NEAR)
            for step, series in stepped.items():
                rows += self.each(detector, look, series[::thin], {"step": step}, most=len(values))
            report(f"real histories, {detector.name}")
        return rows


def speed(smaller: int) -> dict[str, Any]:
    """Ten thousand series of a thousand points on two processes, half of them with a step of 3 sigma."""
    rng = np.random.default_rng(7)
    values = 100 + rng.standard_normal((10_000 // smaller, 1000))
    for row in values[::2]:
        row[rng.integers(50, 950) :] += 3
    started, used = time.perf_counter(), sum(os.times()[:4])
    found = find_changes_in_many(list(values), workers=2)
    seconds, used = time.perf_counter() - started, sum(os.times()[:4]) - used
    return {
        "series": len(values), "points": 1000, "processes": 2, "seconds": seconds, "cpu_seconds": used,
        "load": os.getloadavg()[0], "changes": sum(map(len, found)),
    }  # fmt: skip


_STARTED = time.perf_counter()


def report(part: str) -> None:
    print(f"{time.perf_counter() - _STARTED:7.0f} s  {part}", file=sys.stderr, flush=True)


def versions() -> dict[str, str]:
    known = {}
    for name in ("numpy", "scipy", "ruptures", "asv", "apache-otava"):
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = "not installed: left out"
    return known


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--histories", type=Path, help="folder with real_timings.csv.gz (series, position, seconds)")
    parser.add_argument("--out", type=Path, default=Path("docs/detectors"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the series")
    args = parser.parse_args()
    smaller = 20 if args.quick else 1
    with ProcessPoolExecutor(args.workers) as pool:
        study = Study(pool, smaller)
        result: dict[str, Any] = {"versions": versions(), "speed": speed(smaller)}
        report("speed")
        result |= {"placed": study.placed(), "correlated": study.correlated(), "steps": study.steps()}
        if args.histories:
            stretches, read = quiet_stretches(args.histories / "real_timings.csv.gz")
            stretches = stretches[:: 8 if args.quick else 1]
            result["stretches"] = {"histories": read, "kept": len(stretches)}
            result["real"] = study.real(stretches)
        result["quiet"] = study.quiet()
    result["seconds"] = time.perf_counter() - _STARTED
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "study.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (args.out / "README.md").write_text(render(result), encoding="utf-8")
    draw(result, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
