"""Pictures of the detector study, drawn from study.json alone: ``python -m tools.study_figures docs/detectors``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Okabe and Ito's colours: told apart by colour-blind readers too; each curve has its own marker as well.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#000000")
MARKS = ("●", "■", "▲", "◆", "▼", "✚")
WIDE, HIGH, LEFT, TOP, PAD = 210, 170, 46, 74, 46


def draw(study: dict[str, Any], folder: Path) -> None:
    """Write roc.svg (real histories) and bars.svg (quiet noise against steps of three sigma)."""
    if "real" in study:
        (folder / "roc.svg").write_text(_roc(study), encoding="utf-8")
    (folder / "bars.svg").write_text(_bars(study), encoding="utf-8")


def _page(columns: int, rows: int, title: str, names: list[str], body: Iterable[str]) -> str:
    width, height = LEFT + columns * (WIDE + PAD), TOP + rows * (HIGH + PAD) + 8
    legend = "".join(
        f'<text x="{LEFT + (number % 3) * 250}" y="{38 + 16 * (number // 3)}" fill="{COLOURS[number]}">'
        f"{MARKS[number]} {name}</text>"
        for number, name in enumerate(names)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{LEFT}" y="18" font-size="14">{title}</text>{legend}{"".join(body)}</svg>\n'
    )


def _panel(place: tuple[int, int], title: str, limit: float, labels: tuple[str, str]) -> str:
    x, y = LEFT + place[0] * (WIDE + PAD), TOP + place[1] * (HIGH + PAD)
    parts = [f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" fill="none" stroke="#999"/>']
    for step in range(5):
        across, up = x + WIDE * step / 4, y + HIGH - HIGH * step / 4
        parts.append(f'<path d="M{x} {up}h{WIDE}M{across} {y}v{HIGH}" stroke="#eee"/>')
        parts.append(f'<text x="{across}" y="{y + HIGH + 13}" text-anchor="middle">{limit * step / 4:.0%}</text>')
        parts.append(f'<text x="{x - 4}" y="{up + 4}" text-anchor="end">{step / 4:.0%}</text>')
    parts.append(f'<text x="{x + 4}" y="{y - 4}" font-weight="bold">{title}</text>')
    parts.append(f'<text x="{x + WIDE / 2}" y="{y + HIGH + 27}" text-anchor="middle" fill="#555">{labels[0]}</text>')
    return "".join(parts)


def _curve(place: tuple[int, int], points: list[tuple[float, float]], limit: float, number: int) -> str:
    x, y = LEFT + place[0] * (WIDE + PAD), TOP + place[1] * (HIGH + PAD)
    seen = [(x + WIDE * min(across / limit, 1.0), y + HIGH * (1 - up)) for across, up in sorted(points)]
    line = "L".join(f"{across:.1f} {up:.1f}" for across, up in seen)
    marks = "".join(
        f'<text x="{across:.1f}" y="{up + 3:.1f}" text-anchor="middle" font-size="9">{MARKS[number]}</text>'
        for across, up in seen
    )
    colour = COLOURS[number]
    return f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.6"/><g fill="{colour}">{marks}</g>'


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["detector"] for row in rows))


def _roc(study: dict[str, Any]) -> str:
    rows = study["real"]
    names, body = _names(rows), []
    for number, step in enumerate(sorted({row["step"] for row in rows} - {0})):
        place = (number % 3, number // 3)
        body.append(_panel(place, f"step of {step} %", 0.6, ("stretches with an alarm (edge: or more)", "found")))
        for index, name in enumerate(names):
            mine = [row for row in rows if row["detector"] == name]
            quiet = {row["setting"]: row["share"] for row in mine if row["step"] == 0}
            found = [(quiet[row["setting"]], row["share"]) for row in mine if row["step"] == step]
            body.append(_curve(place, found, 0.6, index))
    kept = study["stretches"]["kept"]
    title = f"Real histories, {kept} stretches: steps found ten points later, against alarms without a step"
    return _page(3, 2, title, names, body)


def _bars(study: dict[str, Any]) -> str:
    names, body = _names(study["quiet"]), []
    for column, kind in enumerate(("gaussian", "student t3", "two levels")):
        body.append(_panel((column, 0), kind, 0.2, ("quiet series with an alarm (edge: or more)", "found")))
        for index, name in enumerate(names):
            quiet = _shares(study["quiet"], name, kind, 0)
            found = _shares(study["steps"], name, kind, 80)
            points = [(quiet[setting], found[setting]) for setting in quiet if setting in found]
            body.append(_curve((column, 0), points, 0.2, index))
    title = "Steps of three sigma found within five points (80 before), against alarms in quiet noise"
    return _page(3, 1, title, names, body)


def _shares(rows: list[dict[str, Any]], name: str, kind: str, history: int) -> dict[float, float]:
    chosen = [r for r in rows if (r["detector"], r["noise"], r["history"]) == (name, kind, history)]
    return {r["setting"]: r["share"] for r in chosen}


if __name__ == "__main__":
    where = Path(sys.argv[1])
    draw(json.loads((where / "study.json").read_text(encoding="utf-8")), where)
