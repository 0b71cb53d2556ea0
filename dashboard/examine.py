"""Change points for the screens, kept as long as results and decisions stay what they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from benchmarks.attribution.change_report import Change
from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.statistics.alarms import FEWEST_POINTS
from benchmarks.attribution.triage import Triage, find_triage

from . import session
from .benchmarks_file import read_descriptions
from .changes import Examined, decisions, direction_word, examined, from_asv, from_records, possible_commits, size
from .summary import Answer


@st.cache_data(max_entries=16, show_spinner="Looking for changes")
def _of_records(folder: str, key: str, machine: str, digest: str, nt: int, _chosen: session.Selection) -> Examined:
    order = dict(session.results().commits[["commit", "order"]].itertuples(index=False))
    return examined(from_records(_chosen.walls, _chosen.parts, session.ENGINE), {}, order)


@st.cache_data(max_entries=16, show_spinner="Looking for changes")
def _of_asv(folder: str, key: str, machine: str, wanted: str) -> Examined:
    found = session.results()
    described, _ = read_descriptions(Path(folder))
    series = found.series[found.series["machine"] == machine]
    names = (series["benchmark"] + " " + series["parameters"]).str.lower()
    for word in wanted.lower().split():
        series = series[names.loc[series.index].str.contains(word, regex=False)]
    histories, left_out = session.ask(lambda now: from_asv(now, series, described))
    order = dict(found.commits[["commit", "order"]].itertuples(index=False))
    return examined(histories, {}, order, left_out)


def examine_records(chosen: session.Selection) -> Examined:
    """Changes of the selection's wall and of each class's share of it."""
    found = session.results()
    return _decided(_of_records(str(found.folder), found.snapshot.key, chosen.machine, chosen.digest, chosen.nt, chosen))


def examine_asv(machine: str, wanted: str) -> Examined:
    """Changes of one machine's asv series whose names hold every word of ``wanted``."""
    found = session.results()
    return _decided(_of_asv(str(found.folder), found.snapshot.key, machine, wanted))


def _decided(looked: Examined) -> Examined:
    """The same changes with today's decisions: those change far more often than the results."""
    known, _ = decisions(session.results().folder)
    return dataclasses.replace(looked, changes=tuple(_with_decision(change, known) for change in looked.changes))


def _with_decision(change: Change, known: dict[tuple[str, str, str], Triage]) -> Change:
    at = change.point.index
    likely = sorted(range(change.point.earliest, change.point.latest + 1), key=lambda index: abs(index - at))
    commits = [change.history.commits[index] for index in likely]
    return dataclasses.replace(change, decision=find_triage(known, change.history.machine, change.history.name, commits))


def marks_of(changes: Sequence[Change]) -> pd.DataFrame:
    """Change points as a chart wants them: order, text."""
    order = dict(session.results().commits[["commit", "order"]].itertuples(index=False))
    rows = [
        {"order": order[change.commit], "text": f"{size(change)}, {direction_word(change)}"}
        for change in changes
        if change.commit in order
    ]
    return pd.DataFrame(rows, columns=["order", "text"])


def wall_changes(chosen: session.Selection) -> list[Change]:
    """Changes of the wall itself, newest first; none where the series cannot be examined."""
    try:
        looked = examine_records(chosen)
    except UserFacingError:
        return []
    return [change for change in looked.changes if change.history.name.startswith("wall(")]


LARGE_STEP = 0.05
"""Between neighbours. Windows of different days differ by 3 to 4 %, so a smaller step says nothing by itself."""


def largest_step(walls: pd.DataFrame) -> tuple[float, str] | None:
    """The largest change of the wall between two neighbouring commits of ``walls`` (columns commit, wall_ns; in order), as
    the quotient before / after (above 1 is faster), and the commit that it came with. None below LARGE_STEP."""
    times = walls["wall_ns"].to_numpy(float)
    if len(times) < 2:
        return None
    quotients = times[:-1] / times[1:]
    at = int(np.argmax(np.abs(np.log(quotients))))
    quotient = float(quotients[at])
    if max(quotient, 1 / quotient) < 1 + LARGE_STEP:
        return None
    return quotient, str(walls["commit"].iloc[at + 1])


def which_commit(changes: Sequence[Change], commits: pd.DataFrame, walls: pd.DataFrame) -> Answer:
    """Which commit moved the wall last?

    Ranks of few points prove nothing, however far apart they are: what the chart shows plainly is then said as a step
    between neighbours, and that it is not tested.
    """
    question = "Which commit?"
    if not changes:
        step = largest_step(walls)
        few = len(walls) < FEWEST_POINTS
        text = f"no lasting change is proved over {len(walls)} measured commits"
        text += f" (at least {FEWEST_POINTS} are needed)" if few else ""
        if step is None:
            return Answer(question, "unsure" if few else "good", f"{text}: what differs is within the noise", "changes")
        quotient, commit = step
        known = commits[commits["commit"] == commit]
        subject = f" ({known['subject'].iloc[0]})" if len(known) else ""
        size_of_it = f"{quotient:,.3g} times as fast" if quotient > 1 else f"{1 / quotient:,.3g} times as slow"
        text += f"; the largest step between neighbours, not tested, came with {commit[:8]}{subject}: {size_of_it}"
        return Answer(question, "unsure", text, "changes")
    newest = changes[0]
    known = commits[commits["commit"] == newest.commit]
    subject = f" ({known['subject'].iloc[0]})" if len(known) else ""
    open_ones = sum(change.decision is None for change in changes)
    others = len(possible_commits(newest)) - 1
    near = f", or one of {others} near it" if others else ""
    text = f"the last lasting change is {size(newest)} at {newest.commit[:8]}{subject}{near}; "
    text += f"{open_ones} of {len(changes)} undecided"
    return Answer(question, "good" if newest.decision or not newest.worse else "bad", text, "changes")
