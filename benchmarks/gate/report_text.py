"""The verdict for a terminal."""

from __future__ import annotations

from ..attribution.ledger import WON
from ..attribution.statistics.paired import Finding, Verdict
from .compiled import Compiled
from .exits import MEANING
from .verdict import Ledger, Result

SHOWN_EARLIER = 3
READING = (
    "base and head are medians; change is estimated from the pairs, which hold the machine's drift out, so it is not their "
    "quotient; detectable is the slowdown that so many pairs find nine times in ten"
)
"""How to read the table, said with each one: two columns that seem to contradict each other cost trust."""


def render(result: Result) -> str:
    """Several lines, no colour codes: the words carry the meaning."""
    lines = [
        f"CI gate: {result.exit.name.replace('_', ' ')}: {result.headline}",
        f"  base {result.base.short} {result.base.subject}",
        f"  head {result.head.short} {result.head.subject}",
        f"  {result.pairs} pairs in {result.seconds:.0f} s"
        + (f", {len(result.quarantined)} more quarantined: {result.quarantined[-1]}" if result.quarantined else ""),
        "",
        *_table(result),
        READING,
    ]
    for ledger in result.ledgers:
        lines += ["", *ledger_lines(ledger)]
    lines += ["", *compiled_lines(result.compiled)]
    for one in result.accepted:
        lines += ["", f"accepted by {one.commit[:10]}: {one.reason}"]
    if result.accepted_before:
        lines += ["", f"accepted earlier ({len(result.accepted_before)} in all):"]
        lines += [f"  {one.commit[:10]}: {one.reason}" for one in result.accepted_before[:SHOWN_EARLIER]]
    if result.undecided and result.undecided_allowed:
        lines += ["", "undecided, and let pass by --allow-undecided: " + ", ".join(f.name for f in result.undecided)]
    lines += ["", f"again: {result.reproduce}", *(f"next:  {step}" for step in result.next_steps)]
    lines += [f"note:  {warning}" for warning in result.warnings]
    lines.append(f"exit {int(result.exit)}: {MEANING[result.exit]}")
    return "\n".join(lines)


def verdict_word(finding: Finding) -> str:
    """UNDECIDED is said with what is known: that a metric is not slower is enough to pass."""
    if finding.verdict is Verdict.UNDECIDED and finding.not_slower:
        return "UNDECIDED (not slower)"
    return str(finding.verdict)


def seconds(value: float) -> str:
    """A duration in the unit that fits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def percent(value: float | None) -> str:
    """A ratio as a signed percentage; a dash where it is not known."""
    return "-" if value is None else f"{value:+.2%}"


def detectable(finding: Finding, result: Result) -> str:
    """The slowdown that so many pairs would have found; before that many could find any, how many could."""
    return percent(finding.detectable) if finding.detectable is not None else f"from {result.pairs_to_convict} pairs"


def interval(finding: Finding) -> str:
    """Simultaneous over metrics and looks; with too few pairs for that, the one-sided limit that a pass rests on."""
    if finding.low is None and finding.high is None and finding.at_most is not None:
        return f"at most {percent(finding.at_most)}"
    return f"{percent(finding.low)} .. {percent(finding.high)}"


def ledger_lines(ledger: Ledger) -> list[str]:
    """Won, tax, net."""
    lines = [f"ledger of {ledger.group}: {seconds(ledger.base_seconds)} -> {seconds(ledger.head_seconds)}"]
    for title, moves in ((WON, ledger.won), (ledger.tax_word, ledger.tax)):
        names = ", ".join(f"{move.name} {signed(move.seconds)}" for move in moves) or "nothing proved"
        lines.append(f"  {title:<10} {signed(sum(move.seconds for move in moves)):>12}   {names}")
    lines.append(f"  {'rest':<10} {signed(ledger.rest_seconds):>12}   noise, gaps and what is still undecided")
    word = "longer" if ledger.net_seconds > 0 else "shorter"
    lines.append(f"  {'net':<10} {signed(ledger.net_seconds):>12}   head's wall is {word} by that; verdict: {ledger.wall}")
    return lines


def compiled_lines(compiled: Compiled) -> list[str]:
    """Every change for the worse, and how many for the better."""
    if compiled.skipped:
        return [f"compiled kernels: not compared ({compiled.skipped})"]
    worse = [f"  WORSE {one.kernel} {one.target} {one.metric} {one.before:g} -> {one.after:g}" for one in compiled.worse]
    return [f"compiled kernels: {len(worse)} changes for the worse of {len(compiled.changes)}", *worse]


def signed(value: float) -> str:
    return "0" if value == 0 else ("+" if value > 0 else "") + seconds(value)


def _table(result: Result) -> list[str]:
    header = ("metric", "base", "head", "change", "interval", "margin", "detectable", "verdict")
    rows = [
        (
            f.name, seconds(f.base_seconds), seconds(f.head_seconds), percent(f.change) + (" of wall" if f.of_wall else ""),
            interval(f), f"{f.margin:.2%}", detectable(f, result), verdict_word(f),
        )
        for f in result.findings
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return [
        "  ".join(text.ljust(width) if column in (0, len(header) - 1) else text.rjust(width)
                  for column, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in (header, *rows)
    ]  # fmt: skip
