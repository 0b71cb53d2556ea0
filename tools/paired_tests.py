"""Which paired test should decide? Simulates the CI gate's sequence of looks with three tests on five kinds of noise.

``python tools/paired_tests.py`` prints the table of docs/gate.md; the seed is fixed, so it prints the same again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.attribution.statistics import paired, sequential, signed_rank

Floats = NDArray[np.float64]
MOST_PAIRS = 100
METRICS = 12
"""Judged together: what Holm's first step divides the error rate by."""


def signed_rank_p(scores: Floats, shift: float) -> Floats:
    """Exact Wilcoxon; scores [runs, pairs], p-value a run against "the centre is at most shift"."""
    moved = scores - shift
    ranks = stats.rankdata(np.abs(moved), axis=1)
    above = (ranks * (moved > 0)).sum(axis=1)
    found: Floats = signed_rank.null_survival(scores.shape[1])[above.astype(int)]
    return found


def student_p(scores: Floats, shift: float) -> Floats:
    """Student's t on the log-ratios."""
    n = scores.shape[1]
    error = scores.std(axis=1, ddof=1) / np.sqrt(n)
    found: Floats = stats.t.sf((scores.mean(axis=1) - shift) / error, n - 1)
    return found


def trimmed_p(scores: Floats, shift: float) -> Floats:
    """Yuen's t: a fifth of the pairs is cut off at each end (Biometrika 61 (1974))."""
    n = scores.shape[1]
    cut = n // 5
    ordered = np.sort(scores, axis=1)
    winsorised = np.clip(ordered, ordered[:, [cut]], ordered[:, [n - cut - 1]])
    kept = n - 2 * cut
    error = np.sqrt(winsorised.var(axis=1, ddof=1) * (n - 1) / (kept * (kept - 1)))
    found: Floats = stats.t.sf((ordered[:, cut : n - cut].mean(axis=1) - shift) / error, kept - 1)
    return found


def noise(kind: str, random: np.random.Generator, runs: int) -> Floats:
    """Log-ratios of identical arms, shape [runs, MOST_PAIRS]."""
    shape = (runs, MOST_PAIRS)
    if kind == "Gaussian 1 %":
        return random.normal(0, 0.01, shape)
    if kind == "Student t, 3 degrees":
        return random.standard_t(3, shape) * 0.007
    if kind == "Cauchy":
        return random.standard_cauchy(shape) * 0.005
    if kind == "two levels, 8 % apart":
        level = [(random.random(shape) < 0.3) * 0.08 for _ in range(2)]
        return level[0] - level[1] + random.normal(0, 0.003, shape)
    order = np.where(np.arange(MOST_PAIRS) % 2, 0.02, -0.02)
    return order + random.normal(0, 0.003, shape)


KINDS = ("Gaussian 1 %", "Student t, 3 degrees", "Cauchy", "two levels, 8 % apart", "first arm 2 % slower")
TESTS: dict[str, Callable[[Floats, float], Floats]] = {
    "signed-rank": signed_rank_p,
    "t": student_p,
    "trimmed t": trimmed_p,
}


def decide(test: Callable[[Floats, float], Floats], scores: Floats) -> tuple[float, float, float]:
    """Shares of runs called SLOWER and called not slower, and the mean number of pairs."""
    margin, start = float(np.log1p(paired.MARGIN)), paired.ALPHA / METRICS
    runs = len(scores)
    state, used = np.zeros(runs, int), np.full(runs, MOST_PAIRS)
    convicting = 0
    for look, pairs in enumerate(sequential.looks_up_to(MOST_PAIRS), 1):
        waiting = np.flatnonzero(state == 0)
        if not len(waiting):
            break
        seen = scores[waiting, :pairs]
        slower = np.zeros(len(waiting), bool)
        if test is not signed_rank_p or signed_rank.smallest_p(pairs) <= start * sequential.share(1):
            convicting += 1
            slower = test(seen, margin) <= start * sequential.share(convicting)
        passed = ~slower & (test(-seen, -margin) <= paired.BETA * sequential.share(look))
        state[waiting[slower]], state[waiting[passed]] = 1, 2
        used[waiting[slower | passed]] = pairs
    return float((state == 1).mean()), float((state == 2).mean()), float(used.mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000, help="simulated verdicts a cell (4000)")
    runs = parser.parse_args().runs
    titles = "SLOWER at the margin | passed at the margin | found at 3 % | pairs at 0 % | pairs at 3 %"
    print(f"| noise of a pair | test | {titles} |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in KINDS:
        for name, test in TESTS.items():
            drawn = noise(kind, np.random.default_rng(1), runs)
            identical, margin, slow = (decide(test, drawn + np.log1p(shift)) for shift in (0.0, paired.MARGIN, 0.03))
            rates = f"{margin[0]:.2%} | {margin[1]:.1%} | {slow[0]:.1%}"
            print(f"| {kind} | {name} | {rates} | {identical[2]:.1f} | {slow[2]:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
