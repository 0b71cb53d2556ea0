"""Change points of what the screens show, with what people decided about them. Found by attribution's own detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.attribution.acceptance import Acceptance, read_acceptances
from benchmarks.attribution.change_report import Change, History, examine
from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.triage import Triage, TriageError, read_triage

from .benchmarks_file import Description
from .data import Results
from .series_names import told_apart

MOST_POINTS = 60_000
"""Points examined at once: about one second for each ten thousand."""


@dataclass(frozen=True)
class Examined:
    """What was found, newest change first."""

    changes: tuple[Change, ...]
    series: int
    left_out: int
    """Series not examined because there were too many points."""


def decisions(results: Path) -> tuple[dict[tuple[str, str, str], Triage], str]:
    """Everything that was decided, and what could not be read."""
    try:
        return read_triage(results), ""
    except TriageError as error:
        return {}, str(error)


def acceptances(results: Path, machine: str) -> tuple[list[Acceptance], str]:
    """Regressions that a Regression-Accepted trailer let through the CI gate, newest first, and what could not be read."""
    try:
        return read_acceptances(results / machine / "accepted.jsonl")[::-1], ""
    except (UserFacingError, OSError) as error:
        return [], str(error)


def acceptance_row(item: Acceptance) -> dict[str, object]:
    """One acceptance as a table takes it."""
    sizes = ["unknown" if change is None else f"{100 * change:+.2f} %" for change in item.changes]
    moved = ", ".join(f"{metric} {size}" for metric, size in zip(item.metrics, sizes, strict=False))
    return {"commit": item.commit[:8], "against": item.base[:8], "reason": item.reason, "slower": moved}


def from_records(walls: pd.DataFrame, parts: pd.DataFrame, engine: str) -> list[History]:
    """The wall of one machine, model and nt, and each class's share of it: named as the ``changes`` command names them."""
    found: list[History] = []
    ours = walls[(walls["engine"] == engine) & walls["best"] & walls["wall_ns"].notna()]
    ours = ours.sort_values(["order", "started", "line"]).drop_duplicates("commit", keep="last")
    for (machine, model, backend, nt), rows in ours.groupby(["machine", "model", "backend", "nt"]):
        commits = tuple(rows["commit"])
        found.append(
            History(
                machine, f"wall({model}, {backend}, nt {nt})", rows["wall_ns"].to_numpy(float) / 1e6, "ms", commits=commits
            )
        )
        inside = parts.merge(rows[["source", "line", "place"]], on=["source", "line", "place"])
        inside = inside[inside["launches"].notna()].sort_values("order")
        for name, part in inside.groupby("part"):
            time, wall = part["ns"].to_numpy(float), part["traced_ns"].to_numpy(float)
            title = f"share of wall({model}, {backend}, nt {nt}, {name})"
            found.append(
                History(machine, title, time / wall, "of wall", "neither", tuple(part["commit"]), class_time=time, wall=wall)
            )
    return found


def from_asv(found: Results, chosen: pd.DataFrame, described: dict[str, Description]) -> tuple[list[History], int]:
    """Histories of asv series (rows of Results.series), as many as MOST_POINTS allows, and how many were left out."""
    histories: list[History] = []
    points = 0
    bare = found.series["benchmark"] + "(" + found.series["parameters"] + ")"
    names = told_apart(found.series, bare.str.removesuffix("()"))
    for place, row in enumerate(chosen.itertuples()):
        values = found.values([int(row.series)])
        values = values[values["value"].notna()]
        points += len(values)
        if points > MOST_POINTS and histories:
            return histories, len(chosen) - place
        about = described.get(str(row.benchmark), Description())
        histories.append(
            History(
                str(row.machine),
                str(names[row.Index]),
                values["value"].to_numpy(float),
                about.unit,
                about.direction,
                tuple(values["commit"]),
            )
        )
    return histories, 0


def examined(
    histories: Sequence[History], decided: dict[tuple[str, str, str], Triage], order: dict[str, int], left_out: int = 0
) -> Examined:
    """Look for changes in every history; ``order`` places commits."""
    enough = [history for history in histories if len(history.values) and np.isfinite(history.values).all()]
    changes = [change for _, listed in examine(enough, decided) for change in listed]
    changes.sort(key=lambda change: -order.get(change.commit, -1))
    return Examined(tuple(changes), len(enough), left_out)


def direction_word(change: Change) -> str:
    """What the change means: a share says whether the class itself moved."""
    if change.share is not None:
        return change.share.cause
    if change.history.direction == "neither":
        return "rose" if change.rose else "fell"
    return "worse" if change.worse else "better"


def size(change: Change) -> str:
    """The ratio after / before as a percentage, with its interval."""
    shift = change.point.shift
    if shift.ratio is None:
        return f"{change.point.before:.4g} → {change.point.after:.4g} {change.history.unit}"
    text = f"{100 * (shift.ratio - 1):+.2f} %"
    if shift.low is not None and shift.high is not None:
        text += f" [{100 * (shift.low - 1):+.2f}, {100 * (shift.high - 1):+.2f}]"
    return text


def possible_commits(change: Change) -> list[str]:
    """The commits at which it could as well have been, in order."""
    return list(change.history.commits[change.point.earliest : change.point.latest + 1])
