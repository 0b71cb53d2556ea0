"""The verdict for a pull request comment and for $GITHUB_STEP_SUMMARY."""

from __future__ import annotations

import re

from ..attribution.statistics.paired import Verdict
from .exits import MEANING, Exit
from .report_text import READING, compiled_lines, detectable, interval, ledger_lines, percent, seconds, verdict_word
from .verdict import Result

MARKER = "<!-- minfer-ci-gate -->"
"""First line of the comment, invisible when rendered: by it the workflow finds its earlier comment and updates it."""


def render(result: Result) -> str:
    """Starts with MARKER. On a red verdict it says which class, how much, how sure, and what to run next."""
    headline = _escape(result.headline[:1].upper() + result.headline[1:])
    lines = [MARKER, f"### CI gate: {_word(result.exit)}", "", f"{headline}.", ""]
    lines += [
        f"`{result.base.short}` {_escape(result.base.subject)} → `{result.head.short}` {_escape(result.head.subject)}, "
        f"{result.pairs} pairs in {result.seconds:.0f} s"
        + (f", {len(result.quarantined)} quarantined ({_escape(result.quarantined[-1])})" if result.quarantined else ""),
        "",
        "| metric | base | head | change | interval | margin | detectable | verdict |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for f in result.findings:
        name, word = _escape(f.name), verdict_word(f)
        if f.verdict is Verdict.SLOWER:
            name, word = f"**{name}**", f"**{word}**"
        change = percent(f.change) + (" of wall" if f.of_wall else "")
        cells = [name, seconds(f.base_seconds), seconds(f.head_seconds), change, interval(f), f"{f.margin:.2%}"]
        lines.append("| " + " | ".join([*cells, detectable(f, result), word]) + " |")
    lines += ["", f"<sub>{READING[0].upper() + READING[1:]}.</sub>"]
    for ledger in result.ledgers:
        lines += ["", "```", *ledger_lines(ledger), "```"]
    if result.compiled.changes:
        lines += ["", "```", *compiled_lines(result.compiled), "```"]
    for one in result.accepted:
        lines += ["", f"**Regression accepted** by `{one.commit[:10]}`: {_escape(one.reason)}"]
    if result.accepted_before:
        count = len(result.accepted_before)
        lines += ["", f"<details><summary>Accepted earlier: {count}</summary>", ""]
        lines += [f"- `{one.commit[:10]}`: {_escape(one.reason)}" for one in result.accepted_before]
        lines += ["", "</details>"]
    if result.undecided and result.undecided_allowed:
        names = ", ".join(_escape(f.name) for f in result.undecided)
        lines += ["", f"Undecided, and let pass by `--allow-undecided`: {names}"]
    if result.next_steps:
        lines += ["", "What to run next:", "", "```sh", *result.next_steps, "```"]
    lines += ["", "Again:", "", "```sh", result.reproduce, "```", ""]
    lines += [f"> {_escape(warning)}" for warning in result.warnings]
    rates = f"Error rates: SLOWER {result.alpha:.0%} over all metrics and looks, passing {result.beta:.0%} a metric"
    lines.append(f"<sub>exit {int(result.exit)}: {MEANING[result.exit]}. {rates}.</sub>")
    return "\n".join(lines) + "\n"


def render_error(code: Exit, message: str) -> str:
    """The same comment where there is no verdict."""
    return f"{MARKER}\n### CI gate: {_word(code)}\n\n{_escape(message)}\n\n<sub>exit {int(code)}: {MEANING[code]}.</sub>\n"


def _word(code: Exit) -> str:
    return code.name.replace("_", " ").lower()


def _escape(text: str) -> str:
    """A subject line or a metric name must not become a table cell, a tag or a mention."""
    for special in "\\`*_|<>[]":
        text = text.replace(special, f"\\{special}")
    return re.sub(r"(?<!\w)@", "@\u200b", text).replace("\n", " ")
