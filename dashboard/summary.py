"""The five questions in the order of someone who must act: fresh, trustworthy, what moved, which commit, what next."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.attribution.checks import best_wall
from benchmarks.attribution.engine_paths import touches_engine
from benchmarks.attribution.expiry import Reason, expiries
from benchmarks.attribution.ledger import LOST, NEW, TAX, VANISHED, WON, WORTH_NAMING, Ledger, ledger_of_records
from benchmarks.attribution.pair import PairError
from benchmarks.attribution.record import PEER, Record, Wall
from benchmarks.attribution.recover import ROUNDED_CEILING, CeilingError, Entry, queue

from .commits import Known
from .compare import State, history_answer
from .portrait import with_range


@dataclass(frozen=True, slots=True)
class Answer:
    """One question's answer. Texts are plain: they may hold what others wrote, and are escaped where they are shown."""

    question: str
    state: State
    text: str
    screen: str
    """The screen that tells more, and the query parameters that it needs beside the common ones."""
    query: dict[str, str] = field(default_factory=dict)


def fresh(newest: Record, known: Known) -> Answer:
    """Is the newest record of the newest commit, or of one after which nothing changed that it ran?"""
    question = "Is it fresh?"
    when = newest.window.started[:16].replace("T", " ")
    subject = f"{newest.commit[:8]} was measured on {when} UTC"
    place = known.after(newest.commit)
    if place is None:
        why = "it is not in the history of this checkout" if known.head else "there is no git history here to compare with"
        return Answer(question, "unsure", f"{subject}; {why}", "commit")
    if place == 0:
        return Answer(question, "good", f"{subject} and is the newest commit", "commit")
    backend = newest.walls[0].backend if newest.walls else ""
    changed = sum(touches_engine(commit.paths, backend) for commit in known.newest_first[:place])
    later = f"the {place} later commits" if place > 1 else "the one later commit"
    if changed == 0:
        return Answer(question, "good", f"{subject}; {later} changed nothing of the engine that it ran", "commit")
    some = f"{changed} of {later}" if place > 1 else later
    are = "are" if changed > 1 else "is"
    return Answer(question, "bad", f"{subject}; {some} changed the engine and {are} not measured on this machine", "commit")


def trustworthy(record: Record, wall: Wall) -> Answer:
    checks = (*wall.checks, *record.checks)
    failed = [check for check in checks if check.passed is False]
    missing = [check for check in checks if check.passed is None]
    quarantined = f"{len(wall.quarantined)} samples quarantined" if wall.quarantined else "no sample quarantined"
    if failed:
        names = "; ".join(f"{check.name}{f' ({check.detail})' if check.detail else ''}" for check in failed)
        return Answer(
            "Is it trustworthy?", "bad", f"{len(failed)} of {len(checks)} checks failed: {names}; {quarantined}", "trust"
        )
    if missing or not checks:
        return Answer(
            "Is it trustworthy?",
            "unsure",
            f"{len(missing)} of {len(checks)} checks could not be applied; {quarantined}",
            "trust",
        )
    return Answer("Is it trustworthy?", "good", f"all {len(checks)} checks passed; {quarantined}", "trust")


def what_moved(before: tuple[Record, Wall] | None, after: tuple[Record, Wall]) -> tuple[Answer, Ledger | None]:
    """The newest commit against the one measured before it."""
    question = "What moved?"
    if before is None:
        return Answer(question, "unsure", "only one commit is measured, so nothing can have moved", "compare"), None
    try:
        book = ledger_of_records(*before, *after)
    except PairError as error:
        return Answer(question, "unsure", str(error), "compare"), None
    sides = {"from": before[0].commit[:12], "to": after[0].commit[:12]}
    sentence, verdict = history_answer(book, (before[0].commit[:8], after[0].commit[:8]))
    least = WORTH_NAMING * statistics.median(after[1].samples_ns)
    kinds = (WON, LOST, TAX, NEW, VANISHED)
    moved = [line for line in book.lines if line.kind in kinds and abs(line.change.value) >= least][:3]
    lines = ", ".join(f"{line.name} {line.change.value / 1e6:+,.3g} ms ({line.kind})" for line in moved)
    text = f"{sentence.removesuffix('.')}" + (f"; {lines}" if lines else "")
    for nt, other, said in _at_other_lengths(before[0], after[0], after[1]):
        text += f". At nt {nt}: {other}"
        verdict = "bad" if "bad" in (verdict, said) else said if verdict == "unsure" else verdict
    return Answer(question, verdict, text, "compare", sides), book


def _at_other_lengths(before: Record, after: Record, shown: Wall) -> list[tuple[int, str, State]]:
    """What the samples resolve at the prompt lengths that are not shown: a commit may move one length alone."""
    found: list[tuple[int, str, State]] = []
    for nt in sorted({wall.nt for wall in after.walls if wall.engine == shown.engine} - {shown.nt}):
        walls = [best_wall(record.walls, shown.engine, nt) for record in (before, after)]
        if walls[0] is None or walls[1] is None:
            continue
        try:
            book = ledger_of_records(before, walls[0], after, walls[1])
        except PairError:
            continue  # the screen of that length says why
        sentence, verdict = history_answer(book, (before.commit[:8], after.commit[:8]))
        if verdict != "unsure":
            found.append((nt, sentence.removesuffix("."), verdict))
    return found


def what_next(record: Record, wall: Wall) -> tuple[Answer, tuple[Entry, ...]]:
    peer = best_wall(record.walls, PEER, wall.nt)
    try:
        entries = queue(record, wall, (record, peer) if peer is not None and wall.engine != PEER else None)
    except (PairError, CeilingError) as error:
        return Answer("What next?", "unsure", str(error), "queue"), ()
    if not entries:
        why = wall.why_not_decomposed or "no class has a target to be priced against"
        return Answer("What next?", "unsure", f"nothing is priced: {why}", "queue"), ()
    # What rounds the activations computes something else: it is offered only where nothing exact is left to win.
    first = next((entry for entry in entries if entry.target != ROUNDED_CEILING), entries[0])
    text = (
        f"{first.name}: {with_range(first.recoverable, ',.3g')} of its {first.ms:,.3g} ms are recoverable "
        f"at the rate of {first.target_name}, "
        f"for {first.tokens_per_second_if_won:,.0f} tok/s"
    )
    return Answer("What next?", "good", text, "queue"), entries


def why_expired(records: Sequence[Record], known: Known, commit: str) -> tuple[Reason, ...]:
    """Why a commit's newest record no longer speaks of today's kernel mix; nothing where it does."""
    answers = expiries(records, known.newest_first, only=commit)
    return answers[-1].reasons if answers else ()
