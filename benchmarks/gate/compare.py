"""Measures two commits against each other: checkouts, a trial of both arms, then pairs until settled."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..attribution.statistics import paired, sequential
from ..attribution.statistics.paired import Finding, PairedSeries, Rule
from ..capture.conditions import Limits, Probe
from . import sampling
from .compiled import Compiled, compare_compiled
from .exits import BenchmarkFailedError, MachineUnfitError, NothingMeasuredError
from .protocol import Request, Status
from .replicate import ARMS, Pair, run_arm, run_pair
from .repository import Repository, Revision
from .state import State
from .worktrees import checked_out

PREFILL = "benchmarks.gate.workloads:prefill"
DETERMINISTIC = "benchmarks.gate.workloads:deterministic"
NOT_COMPILED = Compiled(skipped="not asked for")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """Everything that a comparison is told, besides the two commits."""

    workload: str = PREFILL
    samples: int = 3
    warmups: int = 1
    model: str | None = None
    nt: tuple[int, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    inject: dict[str, float] = field(default_factory=dict)
    patterns: tuple[str, ...] = ()
    rule: Rule = field(default_factory=Rule)
    budget: float = 900.0
    """Seconds; what the trial takes is not counted."""
    timeout: float = 600.0
    """Seconds that one process may take."""
    most_pairs: int | None = None
    resume: bool = False
    limits: Limits = field(default_factory=Limits)
    repository: str | None = None
    """The checkout, where it is not the one that the command runs in; only commands to repeat name it."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that change what is measured, as they were set."""
    with_compiled: bool = False
    """Whether to compare the commits' cubins too."""

    def request(self) -> Request:
        """What a process is told; ``run_pair`` fills in the arm and its checkout."""
        return Request(
            workload=self.workload, checkout="", arm="", replicate=-1, samples=self.samples, warmups=self.warmups,
            model=self.model, nt=self.nt, inject=self.inject, parameters=self.parameters,
        )  # fmt: skip

    def question(self, base: str, head: str) -> dict[str, Any]:
        """What decides whether saved pairs answer the same question. Metrics and rule may change on --resume."""
        request = dataclasses.asdict(self.request())
        about = {"base": base, "head": head, "environment": self.environment}
        return {**about, **{name: request[name] for name in request if name not in ("checkout", "arm")}}


@dataclass(frozen=True)
class Comparison:
    """What was measured and what follows from it."""

    pairs: tuple[Pair, ...]
    series: tuple[PairedSeries, ...]
    findings: tuple[Finding, ...]
    settled: bool
    seconds: float
    """Of this run; resumed pairs were paid for earlier."""
    compiled: Compiled = NOT_COMPILED

    @property
    def used(self) -> list[Pair]:
        return sampling.accepted(self.pairs)


def compare(repository: Repository, base: Revision, head: Revision, settings: Settings, progress: Progress) -> Comparison:
    """Raises BenchmarkFailedError, NothingMeasuredError or MachineUnfitError, each with the one line for the user."""
    state = State(repository.state_folder, settings.question(base.commit, head.commit))
    pairs = state.load() if settings.resume else []
    if pairs:
        progress(f"resumed {len(pairs)} pairs")
    probe = Probe(settings.limits)
    with checked_out(repository, {"base": base.commit, "head": head.commit}) as checkouts:
        compiled = NOT_COMPILED
        if settings.with_compiled:
            compiled = compare_compiled(repository, base, head, checkouts)
            worse = f"{len(compiled.worse)} changes for the worse of {len(compiled.changes)}"
            progress(f"compiled kernels: {compiled.skipped or worse}")
        for arm, revision in zip(ARMS, (base, head), strict=True):
            progress(f"trying {arm} {revision.short} ({revision.subject})")
            try_arm(arm, checkouts[arm], revision, settings, probe)
        measured = compare_checkouts(checkouts, settings, probe, pairs, state.save, progress)
        return dataclasses.replace(measured, compiled=compiled)


def compare_checkouts(
    checkouts: Mapping[str, Path],
    settings: Settings,
    probe: Probe,
    pairs: list[Pair],
    save: Callable[[Sequence[Pair]], None],
    progress: Progress,
    first_replicate: int = 0,
) -> Comparison:
    """The pairs and the verdict of two checkouts that are there already. ``pairs`` are those taken earlier."""
    started = time.monotonic()
    request = settings.request()

    def measure(first: str) -> Pair:
        numbered = dataclasses.replace(request, replicate=first_replicate + len(pairs))
        return run_pair(numbered, checkouts, first, probe, settings.timeout)

    sampling.collect(pairs, measure, settings.rule, settings.patterns, settings.budget, save, progress, settings.most_pairs)
    series = sampling.series_of(pairs, settings.patterns)
    if not series and pairs:
        raise MachineUnfitError(f"every pair was quarantined, the last one: {pairs[-1].quarantined}; free the machine")
    if not series:
        raise NothingMeasuredError(f"no pair was measured within {settings.budget:.0f} s; raise --budget")
    findings = paired.judge(series, settings.rule)
    used = len(series[0].base)
    settled = used in sequential.looks_up_to(used) and sampling.settled(series, settings.rule)
    return Comparison(tuple(pairs), tuple(series), findings, settled, time.monotonic() - started)


def try_arm(arm: str, checkout: Path, revision: Revision, settings: Settings, probe: Probe) -> None:
    """Fail early and clearly; also fills the caches of compiled code that the first process of a checkout would pay for."""
    request = dataclasses.replace(settings.request(), arm=arm, checkout=str(checkout), samples=1)
    report = run_arm(request, probe, settings.timeout).report
    where = f"{request.arm} {revision.short} ({revision.name})"
    if report.status is Status.LACKS_API and request.arm == "base":
        raise NothingMeasuredError(
            f"{where} does not offer what {request.workload} measures ({report.detail}); choose a later --base"
        )
    if report.status is Status.LACKS_API:
        raise BenchmarkFailedError(
            f"{where} no longer offers what {request.workload} measures ({report.detail}); restore it or change the workload"
        )
    if not report.metrics:
        raise NothingMeasuredError(f"{where}: {request.workload} returned no metric; expected {{name: seconds}}")
