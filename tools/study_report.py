"""docs/detectors/README.md, written from study.json alone: ``python -m tools.study_report docs/detectors``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tools.study_detectors import OURS

PLACED = ("found", "within 2", "place interval holds", "ratio interval holds")
KINDS = ("gaussian", "student t3", "two levels")
# Of each peer the settings that its authors ship, or the strictest that still sees steps, and one that is looser.
SHOWN = {
    "asv": (0,),
    "otava": (1e-3, 1e-5),
    "ruptures PELT": (60, 30),
    "ruptures PELT on normal scores": (20, 17, 15),
    "ruptures Binseg on normal scores": (17,),
}


def percent(row: dict[str, Any]) -> str:
    """``0.37 % (0.26-0.51)``, with the 95 % interval."""
    return f"{100 * row['share']:.2f} % ({100 * row['low']:.2f}-{100 * row['high']:.2f})"


def render(study: dict[str, Any]) -> str:
    shown = [(OURS, 1.0), *((name, setting) for name, settings in SHOWN.items() for setting in settings)]
    versions = ", ".join(f"{name} {number}" for name, number in study["versions"].items())
    speed = study["speed"]
    lines = [
        "# Which detector: the measurement",
        "",
        "Written by `python -m tools.detector_study --histories FOLDER`; do not edit. FOLDER holds `real_timings.csv.gz`;",
        "without it the part on real histories is left out. Otava takes part where it can be imported",
        "(`pip install --no-deps apache-otava==0.8.0`: it pins an old NumPy).",
        f"Versions: {versions}.",
        f"The whole study took {study['seconds'] / 60:.0f} minutes on two shared cores.",
        "Brackets are 95 % Clopper-Pearson intervals. All data: `study.json`. The rule: `docs/method.md`.",
        *study.get("notes", []),
        "",
        "## Quiet noise: series with any alarm while 120 points are appended, one look a point",
        "",
        *_table(
            ("detector", "setting", "series", *KINDS),
            [_by_kind(study["quiet"], name, setting, 0) for name, setting in shown],
        ),
        "",
        f"{OURS}, harder noise, and 60 points of history before the first of the 120 looks:",
        "",
        *_table(
            ("noise", "history", "with an alarm"),
            [
                (row["noise"], str(row["history"]), percent(row))
                for row in study["quiet"]
                if row["detector"] == OURS and (row["history"] or row["noise"] not in KINDS)
            ],
        ),
        "",
        "## A step of three standard deviations: found within five points after it, 80 points before",
        "",
        *_table(
            ("detector", "setting", "series", *KINDS),
            [_by_kind(study["steps"], name, setting, 80) for name, setting in shown],
        ),
        "",
        f"{OURS}, by the number of points before the step:",
        "",
        *_table(
            ("points before", "", "series", *KINDS),
            [
                (str(history), "", *_by_kind(study["steps"], OURS, 1.0, history)[2:])
                for history in sorted({row["history"] for row in study["steps"]})
            ],
        ),
        "",
        "![steps against alarms](bars.svg)",
        "",
        "## Correlated noise, AR(0.5): series with any alarm in 120 points",
        "",
        *_table(
            ("detector", "setting", "how", "history", "with an alarm"),
            [
                (row["detector"], f"{row['setting']:g}", row["how"], str(row["history"]), percent(row))
                for row in study["correlated"]
                if (row["detector"], row["setting"]) in shown
            ],
        ),
    ]
    if "real" in study:
        lines += _real(study, shown)
    lines += [
        "",
        "## Place and size of the steps found (Gaussian noise)",
        "",
        *_table(
            ("sigma", "before", "after", "points of the place interval", *PLACED),
            [
                (
                    *(str(row[name]) for name in ("sigma", "before", "after")),
                    f"{row['mean place interval']:.1f}",
                    *(percent(row[name]) for name in PLACED),
                )
                for row in study["placed"]
            ],
        ),
        "",
        "## Speed",
        "",
        f"{speed['series']} series of {speed['points']} points on {speed['processes']} processes:",
        f"{speed['seconds']:.0f} s of wall and {speed['cpu_seconds']:.0f} s of CPU time, on two cores that others used too",
        f"(load average {speed['load']:.1f}).",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _real(study: dict[str, Any], shown: list[tuple[str, float]]) -> list[str]:
    steps = sorted({row["step"] for row in study["real"]})
    rows = []
    for name, setting in shown:
        mine = {row["step"]: row for row in study["real"] if (row["detector"], row["setting"]) == (name, setting)}
        if mine:
            shares = [percent(mine[0]), *(f"{100 * mine[step]['share']:.0f} %" for step in steps[1:])]
            rows.append((name, f"{setting:g}", str(mine[0]["of"]), *shares))
    return [
        "",
        "## Real histories",
        "",
        f"Of each of {study['stretches']['histories']} histories the 150 points whose running median of 15 wanders least,",
        f"if at most 2 %: {study['stretches']['kept']} stretches. Alarms: any, at a look from the 60th to the 150th point.",
        "Steps: 1 to 10 % slower from the 100th point on, found within five points of their place with ten points after",
        "them. Nobody knows that nothing happened in these stretches: some alarms may be real, and the noise of real",
        "machines is not exchangeable. Slow peers took every second stretch.",
        "",
        *_table(("detector", "setting", "stretches", "alarm", *(f"{step} % found" for step in steps[1:])), rows),
        "",
        "![ROC on real histories](roc.svg)",
    ]  # fmt: skip


def _by_kind(rows: list[dict[str, Any]], name: str, setting: float, history: int) -> tuple[str, ...]:
    found = {
        row["noise"]: row for row in rows if (row["detector"], row["setting"], row["history"]) == (name, setting, history)
    }
    if not found:
        return (name, f"{setting:g}", "not measured", *("" for _ in KINDS))
    return (name, f"{setting:g}", str(found[KINDS[0]]["of"]), *(percent(found[kind]) for kind in KINDS))


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows)]


if __name__ == "__main__":
    where = Path(sys.argv[1])
    text = render(json.loads((where / "study.json").read_text(encoding="utf-8")))
    (where / "README.md").write_text(text, encoding="utf-8")
