"""From findings to the one answer: which exit code, which class, what it cost, what to run next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..attribution.ledger import LOST, TAX, is_for_a_gain
from ..attribution.statistics.paired import Finding, Verdict, pairs_to_convict
from .compare import Comparison, Settings
from .compiled import Compiled
from .exits import Exit
from .next_steps import gate_command, longer_budget, next_steps
from .protocol import WALL, group_of
from .repository import Accepted, Revision


@dataclass(frozen=True, slots=True)
class Move:
    """What one class added to (or took from) the wall of its group, seconds."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of one group: net = won + tax + rest. Only classes whose verdict is FASTER or SLOWER are booked: the
    verdicts come from pairs, so they tell apart what the intervals of ``attribution.ledger`` must leave unresolved.
    """

    group: str
    base_seconds: float
    head_seconds: float
    wall: Verdict
    """What the pairs say of the group's wall."""
    won: tuple[Move, ...]
    """Classes proved faster; seconds below 0."""
    tax: tuple[Move, ...]
    """Classes proved slower; seconds above 0. Beside a gain worth the name it is the hidden tax, else it is lost."""

    @property
    def tax_word(self) -> str:
        """What the growth is called here."""
        won, lost = (sum(abs(move.seconds) for move in moves) for moves in (self.won, self.tax))
        return TAX if is_for_a_gain(won, lost) else LOST

    @property
    def net_seconds(self) -> float:
        """The wall's own change: above 0 is slower."""
        return self.head_seconds - self.base_seconds

    @property
    def rest_seconds(self) -> float:
        """What no decided class accounts for: noise, gaps, classes still open."""
        return self.net_seconds - sum(move.seconds for move in (*self.won, *self.tax))


@dataclass(frozen=True)
class Result:
    """All that the reports show."""

    base: Revision
    head: Revision
    exit: Exit
    findings: tuple[Finding, ...]
    ledgers: tuple[Ledger, ...]
    culprit: Finding | None
    """The SLOWER metric that costs most; a class before the wall that it is part of."""
    accepted: tuple[Accepted, ...]
    pairs: int
    quarantined: tuple[str, ...]
    """One reason a quarantined pair."""
    settled: bool
    undecided_allowed: bool
    seconds: float
    margin: float
    alpha: float
    beta: float
    reproduce: str
    next_steps: tuple[str, ...]
    compiled: Compiled
    warnings: tuple[str, ...] = ()
    accepted_before: tuple[Accepted, ...] = ()
    """Acceptances in base's own history, newest first: what was traded away earlier."""

    @property
    def regressed(self) -> tuple[Finding, ...]:
        """What is slower, worst first."""
        slower = [f for f in self.findings if f.verdict is Verdict.SLOWER]
        return tuple(sorted(slower, key=lambda f: f.base_seconds - f.head_seconds))

    @property
    def pairs_to_convict(self) -> int:
        """The fewest pairs with which SLOWER could fall, as many metrics as there are being judged together."""
        return pairs_to_convict(max(1, len(self.findings)), self.alpha)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """What may still be slower."""
        return tuple(f for f in self.findings if f.verdict is Verdict.UNDECIDED and not f.not_slower)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return _headline(self)


def conclude(
    base: Revision,
    head: Revision,
    comparison: Comparison,
    settings: Settings,
    accepted: Sequence[Accepted],
    commits_between: int,
    allow_undecided: bool = False,
    warnings: Sequence[str] = (),
    accepted_before: Sequence[Accepted] = (),
) -> Result:
    """Decide. A regression outweighs what is undecided; an accepted one lets the rest be judged."""
    findings = comparison.findings
    slower = [f for f in findings if f.verdict is Verdict.SLOWER]
    is_open = any(f.verdict is Verdict.UNDECIDED and not f.not_slower for f in findings)
    worse = comparison.compiled.worse
    if (slower or worse) and not accepted:
        code = Exit.REGRESSED
    elif is_open and not allow_undecided:
        code = Exit.UNDECIDED
    else:
        code = Exit.PASSED
    culprit = max(slower, key=lambda f: (group_of(f.name)[1] != WALL, f.head_seconds - f.base_seconds), default=None)
    command = gate_command(base, head, settings)
    return Result(
        base=base,
        head=head,
        exit=code,
        findings=findings,
        ledgers=_ledgers(findings),
        culprit=culprit,
        accepted=tuple(accepted),
        pairs=len(comparison.used),
        quarantined=tuple(pair.quarantined for pair in comparison.pairs if pair.quarantined),
        settled=comparison.settled,
        undecided_allowed=allow_undecided,
        seconds=comparison.seconds,
        margin=settings.rule.margin,
        alpha=settings.rule.alpha,
        beta=settings.rule.beta,
        reproduce=command,
        next_steps=next_steps(code, base, head, culprit, settings, commits_between, longer_budget(comparison, settings)),
        compiled=comparison.compiled,
        warnings=tuple(warnings),
        accepted_before=tuple(accepted_before),
    )


def _ledgers(findings: Sequence[Finding]) -> tuple[Ledger, ...]:
    groups = list(dict.fromkeys(group_of(f.name)[0] for f in findings))
    found: list[Ledger] = []
    for group in groups:
        parts = {group_of(f.name)[1]: f for f in findings if group_of(f.name)[0] == group}
        wall = parts.pop(WALL, None)
        if wall is None or not group:
            continue
        moves = {verdict: [_move(part, f) for part, f in parts.items() if f.verdict is verdict] for verdict in Verdict}
        won, tax = (sorted(moves[v], key=lambda m: -abs(m.seconds)) for v in (Verdict.FASTER, Verdict.SLOWER))
        found.append(Ledger(group, wall.base_seconds, wall.head_seconds, wall.verdict, tuple(won), tuple(tax)))
    return tuple(found)


def _move(part: str, finding: Finding) -> Move:
    return Move(part, finding.head_seconds - finding.base_seconds)


def _headline(result: Result) -> str:
    if result.culprit is not None:
        one = result.culprit
        size = f"{one.change:+.1%}" + (" of the wall" if one.of_wall else "")
        sure = f" (at least {one.low:+.1%}, error {result.alpha:.0%})" if one.low is not None else ""
        text = f"{one.name} is slower by {size}{sure}"
        others = len(result.regressed) - 1
        text += f", and {others} more" if others else ""
        return f"{text}; accepted: {result.accepted[0].reason}" if result.accepted else text
    if result.compiled.worse:
        first = result.compiled.worse[0]
        change = f"{first.metric} {first.before:g} -> {first.after:g} for {first.target}"
        text = f"{first.kernel} compiles worse ({change}), {len(result.compiled.worse)} such changes in all"
        return f"{text}; accepted: {result.accepted[0].reason}" if result.accepted else text
    if result.undecided:
        more = len(result.undecided) - 3
        names = ", ".join(f.name for f in result.undecided[:3]) + (f" and {more} more" if more > 0 else "")
        return f"cannot tell yet for {len(result.undecided)} of {len(result.findings)} metrics: {names}"
    return f"none of {len(result.findings)} metrics is slower by its margin or more (error {result.beta:.0%} each)"
