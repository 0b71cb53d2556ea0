"""The dashboard's main views as one HTML file: it needs no server, no network and nothing beside it, and it prints."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.record import ENGINE, PEER, Record, Wall

from .charts import scripts
from .charts.chart import Chart, drawn
from .charts.decomposition import stacked
from .charts.lines import over_commits
from .charts.portrait import wall_bars
from .charts.waterfall import waterfall
from .colours import ENGINES
from .data import Reader, Results
from .metrics import CATALOGUE, metric
from .portrait import checks_table, class_table, short_labels
from .selecting import newest_walls, rates, ratios
from .summary import Answer, fresh, trustworthy, what_moved, what_next
from .text import for_html

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem;
  color: light-dark(#1c2024, #e8e8e8); background: light-dark(#fff, #171614); }
h1 { font-size: 1.4rem } h2 { font-size: 1.15rem; margin-top: 2rem } .wrap { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid light-dark(#dde2e8, #30363d) }
th:first-child, td:first-child { text-align: left }
:root { --st-text-color: light-dark(#1c2024, #e8e8e8); --st-secondary-background-color: light-dark(#f0f2f6, #262730) }
dt { font-weight: 600; margin-top: .4rem } dd { margin: 0 } .bad { color: light-dark(#b3261e, #ff8a80) }
@media print { body { max-width: none } h2 { break-after: avoid } .chart, table { break-inside: avoid } }
"""
_DRAW = """for (const node of document.querySelectorAll(".chart"))
  plot({data: JSON.parse(node.querySelector("script").textContent), parentElement: node});"""


@dataclass(frozen=True, slots=True)
class View:
    """What the report is about: defaults are the newest commit of the first machine at its longest nt."""

    machine: str
    digest: str
    nt: int


def write_report(results: Path, out: Path, machine: str | None, nt: int | None) -> View:
    """Write one HTML file. Raises UserFacingError where there is nothing to report or the file cannot be written."""
    found = Reader(results).current()
    view = choose_view(found, machine, nt)
    text = render(found, view)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(out)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserFacingError(f"{out}: cannot be written ({error.strerror}); name another file with --out") from error
    return view


def choose_view(found: Results, machine: str | None, nt: int | None) -> View:
    if not found.machines:
        raise UserFacingError(
            f"{found.folder}: no decomposition record in it; run 'make bench', or name another with --results"
        )
    chosen = machine or found.machines[0]
    if chosen not in found.machines:
        raise UserFacingError(f"no records of machine {chosen!r}; there are: {', '.join(found.machines)}")
    rows = found.walls[found.walls["machine"] == chosen].sort_values("order")
    digest = str(rows["digest"].iloc[-1])
    lengths = sorted(int(item) for item in rows.loc[rows["digest"] == digest, "nt"].unique())
    if nt is not None and nt not in lengths:
        raise UserFacingError(f"no wall at nt {nt} on {chosen}; there are: {', '.join(map(str, lengths))}")
    return View(chosen, digest, lengths[-1] if nt is None else nt)


def render(found: Results, view: View) -> str:
    walls = found.walls
    walls = walls[(walls["machine"] == view.machine) & (walls["digest"] == view.digest) & (walls["nt"] == view.nt)]
    measured = walls[walls["wall_ns"].notna() & walls["best"]]
    parts = found.parts(view.machine, view.nt).merge(
        newest_walls(walls, ENGINE)[["source", "line", "place", "wall_ns"]], on=["source", "line", "place"]
    )
    body = [f"<h1>Where did the time go? {for_html(view.machine)}, nt = {view.nt}</h1>"]
    body.append(f"<p>Written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC from {len(found.commits)} measured commits.</p>")
    pairs = [_record_and_wall(found, view.machine, row) for row in newest_walls(walls, ENGINE).tail(2).itertuples()]
    if pairs:
        body += _newest(found, pairs)
    rate = over_commits(rates(measured), metric("tokens_per_second").axis, ENGINES)
    body += ["<h2>Over commits</h2>", _chart(rate, "prefill-rate", "Prefill rate of each engine over commits")]
    if measured["ratio"].notna().any():
        ratio = over_commits(ratios(measured), metric("time_ratio").axis, ENGINES, reference=1.0)
        body.append(_chart(ratio, "ratio", f"Time ratio to {PEER} over commits"))
    if len(parts):
        for key in ("class_ms", "share_of_wall", "cost"):
            body += [
                f"<h2>{for_html(metric(key).label)}</h2><p>{for_html(metric(key).meaning)}</p>",
                _chart(stacked(parts, key)[0], key, f"{metric(key).label} over commits"),
            ]
    body.append(f"<script>{scripts.script('plot')}{_DRAW}</script>")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{for_html(view.machine)}, nt {view.nt}</title><style>{_STYLE}{scripts.style_sheet('plot')}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(body) + "\n</body></html>\n"


def _newest(found: Results, pairs: list[tuple[Record, Wall]]) -> list[str]:
    record, wall = pairs[-1]
    moved, book = what_moved(pairs[0] if len(pairs) > 1 else None, pairs[-1])
    next_step, entries = what_next(record, wall)
    body = [
        "<dl>",
        *(_answer(item) for item in (fresh(record, found.known), trustworthy(record, wall), moved, next_step)),
        "</dl>",
    ]
    body.append(f"<h2>Commit {record.commit[:8]}</h2>")
    listed = [item for item in record.walls if item.nt == wall.nt and item.decomposition]
    names = zip(short_labels(listed), listed, strict=True)
    walls = [(name, item.decomposition) for name, item in names if item.decomposition]
    if walls:
        body += [
            _chart(wall_bars(walls, share=False), "portrait", "One bar of kernel classes an engine"),
            _table(class_table(record, wall)),
        ]
    before = pairs[0][1].decomposition
    if book is not None and before is not None and wall.decomposition is not None:
        labels = (pairs[0][0].commit[:8], record.commit[:8])
        body += [
            "<h2>Since the commit before</h2>",
            _chart(waterfall(book, before.wall_ns, wall.decomposition.wall_ns, labels), "waterfall", "Won and lost"),
        ]
    if entries:
        body.append("<h2>What to do next</h2>")
        for entry in entries[:8]:
            head = f"{entry.name} against {entry.target_name}: {entry.recoverable.value:,.4g} ms"
            steps = "\n".join(for_html(step) for step in entry.chain)
            body.append(f"<details><summary>{for_html(head)}</summary><pre>{steps}</pre></details>")
    return [*body, "<h2>Checks</h2>", _table(checks_table(record, wall))]


def _record_and_wall(found: Results, machine: str, row: Any) -> tuple[Record, Wall]:
    record = found.record(machine, str(row.commit), int(row.line))
    return record, record.walls[int(row.place)]


def _answer(answer: Answer) -> str:
    return f'<dt>{for_html(answer.question)}</dt><dd class="{answer.state}">{for_html(answer.text, 600)}</dd>'


def _chart(figure: Chart, name: str, alt: str) -> str:
    data = json.dumps(drawn(figure, name, alt)).replace("<", "\\u003c")
    return f'<div class="chart">{scripts.markup("plot")}<script type="application/json">{data}</script></div>'


def _table(frame: pd.DataFrame) -> str:
    heads = [CATALOGUE[name].heading if name in CATALOGUE else str(name) for name in frame.columns]
    cells = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    top = "".join(f"<th>{for_html(head)}</th>" for head in heads)
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    return f'<div class="wrap"><table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else for_html(str(value))
