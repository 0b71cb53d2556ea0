"""An answer as one HTML file that needs nothing beside it: no script, no font, no network."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ..attribution.attribute import Answer, DeviceAnswer
from ..attribution.compare import Comparison
from ..attribution.macs import GMAC, us_per_gmac
from ..attribution.record import Check, ClassTime
from . import comparison, portrait

_HUES = (212, 28, 150, 275, 340, 190, 60, 120, 250, 10, 85, 305)
_STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1c2024, #e8e8e8); --quiet: light-dark(#5a6470, #a0a8b0);
  --page: light-dark(#fff, #14171a); --line: light-dark(#dde2e8, #30363d); --bad: light-dark(#b3261e, #ff8a80);
  --good: light-dark(#1b6e3a, #7ee2a0); --copy: light-dark(#9aa4ae, #6b7580); --gap: light-dark(#e6e9ed, #2a3036); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.25rem; overflow-wrap: anywhere; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2rem }
p, li { color: var(--quiet); margin: .2rem 0 } .wrap { overflow-x: auto }
.wall { display: flex; height: 2.2rem; margin: .8rem 0; border: 1px solid var(--line) }
.wall span { overflow: hidden; white-space: nowrap; font-size: .8rem; line-height: 2.2rem; padding-left: .25rem; color: #fff;
  box-sizing: border-box; min-width: 0 }
.copy { background: var(--copy) } .gap { background: var(--gap) } .wall .gap { color: var(--quiet) }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
th:first-child, td:first-child { text-align: left } thead th { color: var(--quiet); font-weight: 600 }
td .bar { display: inline-block; height: .7rem } td.track { width: 20%; text-align: left }
summary { cursor: pointer } details table { font-size: .85rem; margin: .4rem 0 }
code { overflow-wrap: anywhere; font-size: .8rem }
.checks td, .checks th { text-align: left } .failed { color: var(--bad); font-weight: 600 } .ok { color: var(--good) }
"""


def render(answers: Sequence[Answer], comparisons: Sequence[Comparison] = ()) -> str:
    """One page: the answers, then what they say of each other."""
    parts = [part for answer in answers for part in _answer(answer)]
    parts += [part for item in comparisons for part in _comparison(item, answers)]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = f"<title>Attribution of {_text(answers[0].path)}</title>"
    head += f"{title}<style>{_STYLE}</style>"
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>'


def _answer(answer: Answer) -> list[str]:
    parts = [f"<h1>{_text(answer.path)}</h1>", f"<p>{_text(answer.format)}. Window: {_text(answer.window.sentence)}.</p>"]
    failed = len(answer.failed)
    if failed:
        parts.append(f'<p class="failed">{failed} check{"s" if failed > 1 else ""} failed: see below.</p>')
    for device in answer.devices:
        parts += _device(device)
    if answer.bench_results:
        parts.append(_grid(portrait.BENCH_HEADERS, portrait.bench_rows(answer.bench_results)))
    if answer.profiles:
        parts.append(_grid(portrait.PROFILE_HEADERS, portrait.profile_rows(answer.profiles)))
    if answer.all_checks:
        parts.append("<h2>Checks</h2>" + _checks(answer.all_checks))
    if answer.notes:
        parts.append("<h2>Notes</h2><ul>" + "".join(f"<li>{_text(note)}</li>" for note in answer.notes) + "</ul>")
    return parts


def _comparison(item: Comparison, answers: Sequence[Answer]) -> list[str]:
    title = f"Device {item.a_device} of a = {answers[0].path} with device {item.b_device} of b = {answers[1].path}"
    table = [
        [_text(row.name), row.unit, row.a_units, row.b_units, row.a_cost, row.b_cost, row.ratio]
        for row in comparison.rows(item)
    ]
    parts = [f"<h1>{_text(title)}</h1>", _table(list(comparison.HEADERS), table)]
    parts += [f"<p>{_text(line)}</p>" for line in comparison.missing(item)]
    if item.ledger is not None:
        rows = [[_text(cell) for cell in row] for row in comparison.ledger_rows(item.ledger)]
        parts += [f"<h2>{_text(comparison.ledger_title(item.ledger))}</h2>", _table(list(comparison.LEDGER_HEADERS), rows)]
    return [*parts, _checks([(None, check) for check in item.checks])]


def _device(device: DeviceAnswer) -> list[str]:
    rows = portrait.rows(device)
    colours = {row.label: f"hsl({_HUES[i % len(_HUES)]} 60% 42%)" for i, row in enumerate(rows) if row.kind == "class"}
    segments = []
    for row in rows:
        if not row.share:
            continue
        look = f'class="{row.kind}"' if row.kind != "class" else ""
        colour = f"background: {colours[row.label]}; " if row.label in colours and row.kind == "class" else ""
        label = _text(row.label) if row.share > 0.06 else ""
        title = f"{_text(row.label)}: {portrait.milliseconds(row.ns)}, {portrait.percent(row.share)}"
        segments.append(f'<span {look} style="{colour}width: {100 * row.share:.3f}%" title="{title}">{label}</span>')
    work = portrait.has_work(device)
    of = "wall" if device.decomposition is not None else "summed"
    heads = ["class", "", "ms", f"% of {of}", "% of busy", "launches"] + (["GMAC", "us/GMAC"] if work else [])
    by_name = {item.name: item for item in device.classes}
    largest = max((row.share or 0 for row in rows), default=1.0) or 1.0
    body, places = [], portrait.decimals(device)
    for row in rows:
        tone = colours[row.label] if row.kind == "class" else f"var(--{row.kind})"
        width = 100 * (row.share or 0) / largest
        first = _class_cell(by_name[row.label]) if row.kind == "class" else _text(row.label)
        cells = [
            first,
            f'<span class="bar" style="width: {width:.2f}%; background: {tone}"></span>',
            f"{row.ns / 1e6:,.{places}f}",
        ]
        cells += [portrait.percent(row.share), portrait.percent(row.share_of_busy)]
        cells.append("" if row.launches is None else f"{row.launches:,}")
        cells += [portrait.number(row.gmac, 1), portrait.number(row.us_per_gmac, 3)] if work else []
        marked = [f'<td class="track">{cell}</td>' if i == 1 else f"<td>{cell}</td>" for i, cell in enumerate(cells)]
        body.append("<tr>" + "".join(marked) + "</tr>")
    out = [f"<h2>{_text(portrait.headline(device))}</h2>", f'<div class="wall">{"".join(segments)}</div>']
    out.append(
        f'<div class="wrap"><table><thead><tr>{_cells("th", heads)}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )
    copies = portrait.copy_lines(device)
    if copies:
        out.append(f"<p>Copies, overlapped or not: {_text('; '.join(copies))}.</p>")
    if ranges := portrait.range_rows(device):
        out += ["<h3>By named range</h3>", _grid(portrait.RANGE_HEADERS, ranges)]
    queue = portrait.queue_lines(device)
    if queue:
        out.append("<h3>What could be won</h3><ul>" + "".join(f"<li>{_text(line)}</li>" for line in queue) + "</ul>")
    return out


def _class_cell(item: ClassTime) -> str:
    """The class, and on a click its splits and symbols."""
    rows = ""
    for split in item.splits:
        cells = [_text(split.operation), f"{split.ns / 1e6:,.3f} ms", f"{split.launches:,}", _cost(split.ns, split.macs)]
        rows += f"<tr>{_cells('td', cells)}</tr>"
    symbols = "".join(f"<li><code>{_text(symbol)}</code></li>" for symbol in item.symbols)
    table = f"<table>{rows}</table>" if rows else ""
    return f"<details><summary>{_text(item.name)}</summary>{table}<ul>{symbols}</ul></details>"


def _cost(ns: int, macs: int | None) -> str:
    cost = us_per_gmac(ns, macs)
    return "" if cost is None or macs is None else f"{macs / GMAC:,.1f} GMAC, {cost:,.3f} us/GMAC"


def _grid(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return _table(list(headers), [[_text(cell) for cell in row] for row in rows])


def _table(heads: list[str], rows: list[list[str]]) -> str:
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f'<div class="wrap"><table><thead><tr>{_cells("th", heads)}</tr></thead><tbody>{body}</tbody></table></div>'


def _checks(checks: Sequence[tuple[str | None, Check]]) -> str:
    rows = []
    for device, check in checks:
        look = {True: "ok", False: "failed", None: ""}[check.passed]
        text = "; ".join(part for part in (portrait.figure(check), check.detail) if part)
        cells = [
            _text(check.name),
            _text(device or ""),
            f'<span class="{look}">{portrait.verdict(check)}</span>',
            _text(text),
        ]
        rows.append(f"<tr>{_cells('td', cells)}</tr>")
    heads = _cells("th", ["check", "device", "", ""])
    return f'<table class="checks"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _cells(tag: str, values: list[str]) -> str:
    return "".join(f"<{tag}>{value}</{tag}>" for value in values)


def _text(text: str) -> str:
    return html.escape(text, quote=True)
