"""Measures the CI gate itself: whole verdicts on identical commits, and on ones with a known slowdown in one class."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..attribution.errors import UserFacingError
from ..attribution.statistics.calibration import IDENTICAL, Calibration, Trial
from ..attribution.statistics.paired import Verdict
from ..capture.conditions import Probe
from . import sampling
from .compare import Progress, Settings, compare_checkouts, try_arm
from .files import write_whole
from .protocol import WALL, group_of
from .replicate import ARMS, run_arm
from .repository import Repository, Revision
from .worktrees import checked_out

CLOCKS = {
    "benchmarks.gate.workloads:deterministic": "CPU time of the measured process, the fastest of several bursts",
}
REPLICATES_APART = 10_000
"""Pairs of different trials are numbered this far apart, so that seeded noise never repeats."""


def calibrate(
    repository: Repository,
    revision: Revision,
    settings: Settings,
    identical: int,
    slowed: int,
    slowdown: float,
    classes: Sequence[str],
    machine: str,
    state: Path,
    progress: Progress,
) -> Calibration:
    """Run ``identical`` A/A verdicts and ``slowed`` ones with ``slowdown`` injected, each class of ``classes`` in turn (all
    where none is named), evenly mixed so that both kinds meet the same machine. Trials are saved to ``state`` one by one;
    a run with ``settings.resume`` goes on from there.
    """
    probe = Probe(settings.limits)
    trials, loads = _load(state) if settings.resume else ([], [])
    with checked_out(repository, dict.fromkeys(ARMS, revision.commit)) as checkouts:
        for arm in ARMS:
            try_arm(arm, checkouts[arm], revision, settings, probe)
        request = dataclasses.replace(settings.request(), arm="base", checkout=str(checkouts["base"]), samples=1)
        metrics = tuple(run_arm(request, probe, settings.timeout).report.metrics)
        parts = [part for name in metrics for group, part in [group_of(name)] if group and part != WALL]
        unknown = sorted(set(classes) - set(parts))
        if unknown:
            raise UserFacingError(f"--class {unknown[0]}: {settings.workload} measures {', '.join(parts) or 'no classes'}")
        plan = schedule(identical, slowed, classes or parts)
        for index, kind in enumerate(plan[len(trials) :], len(trials)):
            inject = {} if kind == IDENTICAL else {kind: slowdown}
            told = dataclasses.replace(settings, inject=inject, resume=False)
            found = compare_checkouts(checkouts, told, probe, [], lambda _: None, lambda _: None, index * REPLICATES_APART)
            slower = tuple(f.name for f in found.findings if f.verdict is Verdict.SLOWER)
            passed = all(f.not_slower for f in found.findings)
            trials.append(Trial(kind, inject.get(kind, 0.0), passed, slower, len(found.used), round(found.seconds, 3)))
            loads.append(round(os.getloadavg()[0], 2))
            _save(state, trials, loads)
            progress(f"{index + 1}/{len(plan)} {kind}: {', '.join(slower) or ('passed' if passed else 'undecided')}, "
                     f"{len(found.used)} pairs, {found.seconds:.1f} s")  # fmt: skip
    return Calibration(
        commit=revision.commit,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine,
        workload=settings.workload,
        clock=CLOCKS.get(settings.workload, "wall"),
        metrics=tuple(sampling.matching(metrics, settings.patterns)),
        margin=settings.rule.margin,
        alpha=settings.rule.alpha,
        beta=settings.rule.beta,
        samples=settings.samples,
        most_pairs=settings.most_pairs,
        load_average=tuple(loads),
        trials=tuple(trials),
    )


def schedule(identical: int, slowed: int, classes: Sequence[str]) -> list[str]:
    """The kinds of all trials in order, the two sorts evenly mixed. Raises UserFacingError where no class can be slowed."""
    if slowed and not classes:
        raise UserFacingError("--slowed: the workload measures no class that could be slowed; give --slowed 0")
    plan: list[str] = []
    done = {True: 0, False: 0}
    for _ in range(identical + slowed):
        is_slowed = done[True] * max(identical, 1) < done[False] * slowed or done[False] == identical
        plan.append(classes[done[True] % len(classes)] if is_slowed else IDENTICAL)
        done[is_slowed] += 1
    return plan


def _load(state: Path) -> tuple[list[Trial], list[float]]:
    if not state.exists():
        return [], []
    try:
        data = json.loads(state.read_text(encoding="utf-8"))
        return [Trial(**{**trial, "slower": tuple(trial["slower"])}) for trial in data["trials"]], list(data["loads"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserFacingError(f"--resume: cannot read {state} ({error}); delete it") from error


def _save(state: Path, trials: Sequence[Trial], loads: Sequence[float]) -> None:
    data = {"trials": [dataclasses.asdict(trial) for trial in trials], "loads": list(loads)}
    write_whole(state, json.dumps(data) + "\n", "saving the trials")
