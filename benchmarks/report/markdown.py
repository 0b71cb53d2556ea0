"""An answer as Markdown, for an issue or a pull request."""

from __future__ import annotations

from ..attribution.attribute import Answer, DeviceAnswer
from . import portrait


def render(answer: Answer) -> str:
    lines = [f"**{_escape(answer.path)}**: {answer.format}; {_escape(answer.window.sentence)}", ""]
    for device in answer.devices:
        lines += [_escape(portrait.headline(device)) + ".", "", *_table(device), ""]
        copies = portrait.copy_lines(device)
        lines += ["Copies, overlapped or not: " + "; ".join(copies) + ".", ""] if copies else []
    if answer.bench_results:
        lines += ["| nt | generated | ubatch | tok/s | mean ms |", "| ---: | ---: | ---: | ---: | ---: |"]
        for row in answer.bench_results:
            mean = "" if row.mean_ns is None else f"{row.mean_ns / 1e6:,.3f}"
            lines.append(
                f"| {row.nt} | {row.generated} | {'' if row.ubatch is None else row.ubatch} "
                f"| {row.tokens_per_second:,.1f} | {mean} |"
            )
        lines.append("")
    if answer.all_checks:
        lines += ["| check | device | | |", "| --- | --- | --- | --- |"]
        for device_name, check in answer.all_checks:
            cells = (check.name, device_name or "", portrait.verdict(check))
            text = "; ".join(part for part in (portrait.figure(check), check.detail) if part)
            lines.append("| " + " | ".join(_escape(cell) for cell in (*cells, text)) + " |")
        lines.append("")
    lines += [f"- {_escape(note)}" for note in answer.notes]
    return "\n".join(lines).rstrip()


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


def _escape(text: str) -> str:
    """Kernel names hold signs that Markdown would read."""
    for sign in "\\|*_<>`[]":
        text = text.replace(sign, f"&#{ord(sign)};" if sign in "|<>" else f"\\{sign}")
    return text
