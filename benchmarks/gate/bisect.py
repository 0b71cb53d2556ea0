"""Finds the commit that made a metric slower, with the CI gate's own paired test, and checks it by reverting it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..attribution.errors import UserFacingError
from ..attribution.git import GitError
from ..attribution.statistics.paired import Finding, Rule, Verdict
from .compare import Comparison, Progress, Settings, compare
from .exits import BenchmarkFailedError, NothingMeasuredError
from .repository import Repository, Revision, run_git
from .worktrees import checked_out


class Side(StrEnum):
    """Which end of the range a commit behaves like."""

    GOOD = "good"
    BAD = "bad"
    UNMEASURABLE = "unmeasurable"
    UNDECIDED = "undecided"


class RevertOutcome(StrEnum):
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    """With the commit reverted the metric stays slow: something else made it slow too, or alone."""
    CONFLICT = "conflict"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Step:
    """One commit tried."""

    revision: Revision
    side: Side
    change: float | None
    """Against the good end, head / base - 1."""
    pairs: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer. ``suspects`` holds more than one commit where some between could not be measured or decided."""

    good: Revision
    bad: Revision
    whole: Finding
    """Bad against good."""
    suspects: tuple[Revision, ...]
    steps: tuple[Step, ...]
    revert: RevertOutcome | None
    revert_detail: str


Measure = Callable[[Revision, Revision, Rule], Comparison]


def bisect(
    repository: Repository, good: Revision, bad: Revision, metric: str, settings: Settings, progress: Progress
) -> Found:
    """Raises NothingMeasuredError where bad is not slower than good, UserFacingError where the range makes no sense."""
    commits = between(repository, good, bad)
    one = dataclasses.replace(settings, patterns=(metric,))

    def measure(base: Revision, head: Revision, rule: Rule) -> Comparison:
        return compare(repository, base, head, dataclasses.replace(one, rule=rule), progress)

    progress(f"{len(commits)} commits; first bad {bad.short} against good {good.short}")
    whole = _single(measure(good, bad, settings.rule), metric)
    if whole.verdict is not Verdict.SLOWER:
        raise NothingMeasuredError(
            f"{metric}: {bad.short} is not shown to be slower than {good.short} ({whole.verdict}, {whole.change:+.1%}); "
            "nothing to find in this range: check the ends, or raise --budget"
        )
    rule = halfway(settings.rule, whole)
    steps: list[Step] = []

    def side(revision: Revision) -> Side:
        step = _try(measure, good, revision, rule, metric)
        steps.append(step)
        progress(f"{revision.short} ({revision.subject}) is {step.side}" + (f": {step.detail}" if step.detail else ""))
        return step.side

    suspects = search(commits, side)
    revert, detail = None, f"{len(suspects)} commits are left, so none was reverted"
    if len(suspects) == 1:
        revert, detail = check_by_revert(repository, good, bad, suspects[0], rule, measure, metric)
        progress(f"revert check: {revert}: {detail}")
    return Found(good, bad, whole, tuple(suspects), tuple(steps), revert, detail)


def between(repository: Repository, good: Revision, bad: Revision) -> list[Revision]:
    """The commits after good up to bad, oldest first, along first parents: a merged branch is one step.

    Raises UserFacingError where good is not an ancestor of bad.
    """
    if good.commit == bad.commit or repository.merge_base(good.commit, bad.commit) != good.commit:
        raise UserFacingError(
            f"{good.name}..{bad.name}: {good.short} is no ancestor of {bad.short}; give an older good commit"
        )
    output = repository.git("rev-list", "--reverse", "--first-parent", "--ancestry-path", f"{good.commit}..{bad.commit}")
    return [repository.revision(commit) for commit in output.splitlines()]


def halfway(rule: Rule, whole: Finding) -> Rule:
    """A commit counts as bad where it is slower than good by more than half of the whole step: both errors then weigh the
    same, and a commit in between that costs a little does not end the search early.
    """
    half = math.expm1(math.log1p(whole.change) / 2)
    return dataclasses.replace(rule, margin=half, floor_seconds=0.0)


def search(commits: Sequence[Revision], side: Callable[[Revision], Side]) -> list[Revision]:
    """First bad commit of ``commits`` (oldest first; the last one is bad) in about log2(n) calls of ``side``.

    A commit that cannot be measured or decided is passed over; what then stays between the last good and the first bad
    one is returned whole, never guessed at.
    """
    last_good, first_bad = -1, len(commits) - 1
    unknown: set[int] = set()
    while True:
        open_ones = [index for index in range(last_good + 1, first_bad) if index not in unknown]
        if not open_ones:
            return list(commits[last_good + 1 : first_bad + 1])
        middle = (last_good + first_bad) / 2
        index = min(open_ones, key=lambda one: abs(one - middle))
        answer = side(commits[index])
        if answer is Side.GOOD:
            last_good = index
        elif answer is Side.BAD:
            first_bad = index
        else:
            unknown.add(index)


def check_by_revert(
    repository: Repository, good: Revision, bad: Revision, suspect: Revision, rule: Rule, measure: Measure, metric: str
) -> tuple[RevertOutcome, str]:
    """Measure bad with the suspect alone taken back, against good."""
    try:
        reverted = _revert(repository, bad, suspect)
    except GitError as error:
        return RevertOutcome.CONFLICT, f"reverting {suspect.short} on {bad.short} conflicts ({error}); confirm it by hand"
    finding = _single(measure(good, reverted, rule), metric)
    if finding.verdict is Verdict.SLOWER:
        return RevertOutcome.REFUTED, f"without {suspect.short}, {metric} is still slower than good by {finding.change:+.1%}"
    if finding.not_slower:
        return RevertOutcome.CONFIRMED, f"without {suspect.short}, {metric} is back within {finding.change:+.1%} of good"
    return RevertOutcome.UNDECIDED, f"without {suspect.short}, {metric} is at {finding.change:+.1%} of good, not decided"


def _try(measure: Measure, good: Revision, revision: Revision, rule: Rule, metric: str) -> Step:
    try:
        finding = _single(measure(good, revision, rule), metric)
    except (BenchmarkFailedError, NothingMeasuredError) as error:
        return Step(revision, Side.UNMEASURABLE, None, 0, str(error))
    side = Side.BAD if finding.verdict is Verdict.SLOWER else Side.GOOD if finding.not_slower else Side.UNDECIDED
    return Step(revision, side, finding.change, finding.pairs, f"{finding.change:+.1%} against good, {finding.pairs} pairs")


def _single(comparison: Comparison, metric: str) -> Finding:
    if len(comparison.findings) != 1:
        names = ", ".join(finding.name for finding in comparison.findings)
        raise UserFacingError(f"--metric {metric}: matches {names}; name one metric")
    return comparison.findings[0]


def _revert(repository: Repository, bad: Revision, suspect: Revision) -> Revision:
    """A commit that belongs to no branch: bad with the suspect's change taken back. Raises GitError on a conflict."""
    parents = repository.git("rev-list", "--parents", "-1", suspect.commit).split()[1:]
    mainline = ["-m", "1"] if len(parents) > 1 else []
    # The commit is thrown away with the worktree, so it needs no real author and must not wait for a signature.
    identity = ["-c", "user.name=bisect", "-c", "user.email=bisect@localhost", "-c", "commit.gpgsign=false"]
    with checked_out(repository, {"bad": bad.commit}) as paths:
        run_git(paths["bad"], *identity, "revert", "--no-edit", *mainline, suspect.commit)
        commit = run_git(paths["bad"], "rev-parse", "HEAD")
    return Revision(f"{bad.short} without {suspect.short}", commit, f"{bad.subject}, {suspect.short} reverted")
