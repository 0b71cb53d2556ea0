"""The commands that a verdict ends with: the same question again, and what to run next."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Sequence

from ..attribution.statistics import paired, sequential
from ..attribution.statistics.paired import Finding
from .compare import PREFILL, Comparison, Settings
from .exits import Exit
from .repository import Revision


def gate_command(base: Revision, head: Revision, settings: Settings) -> str:
    """The exact command that asks the same question again."""
    static = [] if settings.with_compiled else ["--no-static"]
    words = ["--base", base.short, "--head", head.short, *common_words(settings), *static]
    return command_line("gate", words, settings)


def command_line(command: str, words: Sequence[str], settings: Settings) -> str:
    """As one types it into a shell, the variables that matter first."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in settings.environment.items()]
    return " ".join([*variables, shlex.join(["python", "-m", "benchmarks", command, *words])])


def common_words(settings: Settings) -> list[str]:
    """Settings that differ from their defaults, as the options of ``gate`` and ``bisect``."""
    default = Settings()
    words = ["--repository", settings.repository] if settings.repository else []
    if settings.workload != PREFILL:
        words += ["--workload", settings.workload]
    if settings.model:
        words += ["--model", settings.model]
    for nt in settings.nt:
        words += ["--nt", str(nt)]
    if settings.rule.margin != default.rule.margin:
        words += ["--margin", f"{settings.rule.margin:g}"]
    if settings.rule.floor_seconds is not None:
        words += ["--floor-us", f"{settings.rule.floor_seconds * 1e6:g}"]
    for name, seen, usual in (
        ("--samples", settings.samples, default.samples),
        ("--warmups", settings.warmups, default.warmups),
        ("--budget", settings.budget, default.budget),
        ("--timeout", settings.timeout, default.timeout),
        ("--max-pairs", settings.most_pairs, default.most_pairs),
        ("--foreign-limit", settings.limits.foreign_cpu, default.limits.foreign_cpu),
    ):
        if seen is not None and seen != usual:
            words += [name, f"{seen:g}"]
    for name, value in settings.parameters.items():
        words += ["--set", f"{name}={value}"]
    for pattern in settings.patterns:
        words += ["--metric", pattern]
    return words


def next_steps(
    code: Exit, base: Revision, head: Revision, culprit: Finding | None, settings: Settings, commits: int, budget: float
) -> tuple[str, ...]:
    """What to run after this verdict; nothing where it is green. ``commits`` lie between base and head."""
    accept = 'git commit --amend --trailer "Regression-Accepted: why it is worth it"   # only for a known trade'
    if code is Exit.REGRESSED and culprit is None:
        return (f"python -m benchmarks static --base {base.short}   # each kernel that compiles worse", accept)
    if code is Exit.REGRESSED and culprit is not None:
        if commits > 1:
            one = dataclasses.replace(settings, patterns=())
            words = ["--metric", culprit.name, *common_words(one), f"{base.short}..{head.short}"]
            step = command_line("bisect", words, settings)
            find = f"{step}   # which of the {commits} commits it is"
        else:
            find = f"git show {head.short}   # the one commit between base and head"
        return (find, accept)
    if code is Exit.UNDECIDED:
        longer = dataclasses.replace(settings, budget=budget, most_pairs=None)
        return (f"{gate_command(base, head, longer)} --resume   # goes on from the pairs already taken",)
    return ()


def longer_budget(comparison: Comparison, settings: Settings) -> float:
    """Seconds that should do where ``settings.budget`` did not: twice as many, and enough for the next look and for the
    first one at which SLOWER can fall.
    """
    used = len(comparison.used)
    wanted = max(sequential.next_look(used), paired.pairs_to_convict(max(1, len(comparison.findings)), settings.rule.alpha))
    slowest = max((pair.seconds for pair in comparison.pairs), default=0.0)
    return float(math.ceil(max(2 * settings.budget, 1.2 * (wanted - used) * slowest) / 60) * 60)
