"""An answer as Markdown, for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from ..attribution.attribute import Answer, DeviceAnswer
from ..attribution.compare import Comparison
from . import comparison, portrait


def render(answers: Sequence[Answer], comparisons: Sequence[Comparison] = ()) -> str:
    """The answers, then what they say of each other."""
    parts = [_answer(answer) for answer in answers] + [_comparison(item, answers) for item in comparisons]
    return "\n\n".join(parts)


def _answer(answer: Answer) -> str:
    lines = [f"**{_escape(answer.path)}**: {answer.format}; {_escape(answer.window.sentence)}", ""]
    for device in answer.devices:
        lines += [_escape(portrait.headline(device)) + ".", "", *_table(device), ""]
        copies = portrait.copy_lines(device)
        lines += ["Copies, overlapped or not: " + "; ".join(copies) + ".", ""] if copies else []
        ranges = portrait.range_rows(device)
        lines += [*_grid(portrait.RANGE_HEADERS, ranges), ""] if ranges else []
        queue = portrait.queue_lines(device)
        lines += ["What could be won:", "", *(f"- {_escape(line)}" for line in queue), ""] if queue else []
    if answer.bench_results:
        lines += [*_grid(portrait.BENCH_HEADERS, portrait.bench_rows(answer.bench_results)), ""]
    if answer.profiles:
        lines += [*_grid(portrait.PROFILE_HEADERS, portrait.profile_rows(answer.profiles)), ""]
    if answer.all_checks:
        lines += ["| check | device | | |", "| --- | --- | --- | --- |"]
        for device_name, check in answer.all_checks:
            cells = (check.name, device_name or "", portrait.verdict(check))
            text = "; ".join(part for part in (portrait.figure(check), check.detail) if part)
            lines.append("| " + " | ".join(_escape(cell) for cell in (*cells, text)) + " |")
        lines.append("")
    lines += [f"- {_escape(note)}" for note in answer.notes]
    return "\n".join(lines).rstrip()


def _grid(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(headers) + " |", "| --- |" + " ---: |" * (len(headers) - 1)]
    return lines + ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in rows]


def _table(device: DeviceAnswer) -> list[str]:
    work = portrait.has_work(device)
    of = "wall" if device.decomposition is not None else "summed"
    header = ["class", "ms", f"% of {of}", "% of busy", "launches"] + (["GMAC", "us/GMAC"] if work else [])
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    for row in portrait.rows(device):
        cells = [
            _escape(row.label),
            f"{row.ns / 1e6:,.3f}",
            portrait.percent(row.share),
            portrait.percent(row.share_of_busy),
        ]
        cells.append("" if row.launches is None else f"{row.launches:,}")
        if work:
            cells += [portrait.number(row.gmac, 1), portrait.number(row.us_per_gmac, 3)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _comparison(item: Comparison, answers: Sequence[Answer]) -> str:
    title = f"Device {item.a_device} of a = {answers[0].path} with device {item.b_device} of b = {answers[1].path}"
    lines = [f"**{_escape(title)}**", ""]
    lines += ["| " + " | ".join(comparison.HEADERS) + " |", "| --- | --- |" + " ---: |" * (len(comparison.HEADERS) - 2)]
    for row in comparison.rows(item):
        cells = (_escape(row.name), row.unit, row.a_units, row.b_units, row.a_cost, row.b_cost, row.ratio)
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"- {_escape(line)}" for line in comparison.missing(item))]
    if item.ledger is not None:
        lines += ["", _escape(comparison.ledger_title(item.ledger)) + ".", ""]
        lines += ["| " + " | ".join(comparison.LEDGER_HEADERS) + " |", "| --- | ---: | ---: | ---: | --- |"]
        lines += ["| " + " | ".join([_escape(row[0]), *row[1:]]) + " |" for row in comparison.ledger_rows(item.ledger)]
    lines.append("")
    for check in item.checks:
        text = "; ".join(part for part in (portrait.figure(check), check.detail) if part)
        lines.append(f"- {portrait.verdict(check)}: {_escape(check.name)}" + (f": {_escape(text)}" if text else ""))
    return "\n".join(lines)


def _escape(text: str) -> str:
    """Kernel names hold signs that Markdown would read."""
    for sign in "\\|*_<>`[]":
        text = text.replace(sign, f"&#{ord(sign)};" if sign in "|<>" else f"\\{sign}")
    return text
