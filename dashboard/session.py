"""What every screen shares: the results, the selection in the sidebar and the URL, and the words for what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from benchmarks.attribution.record import ENGINE as ENGINE
from benchmarks.attribution.record import PEER as PEER
from benchmarks.attribution.record import Record, Wall
from benchmarks.attribution.record_files import RecordError
from benchmarks.report.portrait import stages_text

from .charts import component
from .charts.chart import Chart, drawn
from .choices import choose
from .configuration import Settings, settings
from .data import Results, reader_of
from .kernels import symbols_of
from .tables import show_table
from .text import for_markdown, shortened

T = TypeVar("T")
Places = tuple[tuple[str, int], ...]
"""Records by commit and line."""
MOST_RECORDS = 200
"""Records that a question over many commits looks at."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What the sidebar (and so the URL) says. ``walls`` and ``parts`` hold that machine, model and nt, all engines."""

    machine: str
    digest: str
    nt: int
    walls: pd.DataFrame
    parts: pd.DataFrame


# Streamlit leaves a hand's breadth above the title; headings are sized for a tool, not for a poster.
_CSS = """<style>
[data-testid="stMainBlockContainer"] { padding-top: 3.6rem; padding-bottom: 3rem; }
[data-testid="stMain"] h1 { font-size: 1.7rem; padding: 0.4rem 0; }
[data-testid="stMain"] h2 { font-size: 1.25rem; }
[data-testid="stMain"] h3 { font-size: 1.1rem; }
[data-testid="stMarkdownContainer"] table { display: block; max-width: 100%; overflow-x: auto; font-size: 0.9rem; }
[data-testid="stMetricValue"] { font-size: 1.45rem; }
:focus-visible:not(input, textarea) { outline: 2px solid currentColor !important; outline-offset: 2px; }
[data-testid^="stBaseButton-primary"] { color: light-dark(#FFFFFF, #0E1117) !important; }
main:focus-visible, [data-testid="stSidebarNavLink"]:focus-visible { outline-offset: -3px; }
@media (max-width: 640px) { [data-testid="stMainBlockContainer"] { padding-left: 0.8rem; padding-right: 0.8rem; } }
@media print { [data-testid="stSidebar"], [data-testid="stHeader"] { display: none; } }
</style>"""


def begin() -> None:
    """Called once a run, before the screen: settings and results are then at hand through ``results()``."""
    st.html(_CSS)
    found = settings()
    reader = reader_of(found.results)
    place = st.empty()

    def progress(done: int, total: int) -> None:
        if total > 200:
            place.progress(done / total, f"Reading the results: {done:,} of {total:,} files (only once)")

    st.session_state["_settings"] = found
    st.session_state["_results"] = reader.current(progress)
    place.empty()


def current_settings() -> Settings:
    found: Settings = st.session_state["_settings"]
    return found


def results() -> Results:
    found: Results = st.session_state["_results"]
    return found


def ask(question: Callable[[Results], T]) -> T:
    """Ask the results; a cache that turns out to be damaged is rebuilt first."""
    return reader_of(results().folder).ask(question)


def selection() -> Selection:
    """The sidebar's choice of machine, model and nt. Where there is nothing to choose it says so and ends the run."""
    found = results()
    show_problems(found)
    if found.walls.empty:
        _explain_empty(found)
        st.stop()
    with st.sidebar:
        machine = choose("Machine", found.machines, "machine", found.machines[0], keep=True)
        models = found.models(machine)
        first = next(iter(models))
        model = choose(
            "Model", list(models), "model", first, lambda key: f"{shortened(models[key][1], 60)} ({key[:6]})", keep=True
        )
        digest = models[model][0]
        lengths = found.lengths(machine, digest)
        nt = int(choose("Prompt tokens (nt)", [str(item) for item in lengths], "nt", str(lengths[-1]), keep=True))
        choose("Chart image", ["png", "svg"], "image", "png", keep=True)
        link_to_this_view()
    parts = reader_of(found.folder).ask(lambda now: now.parts_of_model(machine, digest, nt))
    return Selection(machine, digest, nt, found.walls_of(machine, digest, nt), parts)


def record(machine: str, commit: str, line: int) -> Record:
    """A whole record; one that has become unreadable ends the run with a line that says so."""
    try:
        return results().record(machine, commit, line)
    except RecordError as error:
        st.error(for_markdown(str(error), 400), icon=":material/error:")
        st.stop()


def record_and_wall(machine: str, row: Any) -> tuple[Record, Wall]:
    """The record and wall that a row of ``walls`` stands for."""
    taken = record(machine, str(row.commit), int(row.line))
    return taken, taken.walls[int(row.place)]


@st.cache_data(max_entries=8, show_spinner=False)
def _newest_records(folder: str, machine: str, key: str) -> list[Record]:
    del key
    return reader_of(Path(folder)).ask(lambda now: now.records(machine, MOST_RECORDS))


@st.cache_data(max_entries=32, show_spinner=False)
def _symbols(stamp: tuple[str, str], machine: str, places: Places, engine: str, nt: int, name: str) -> dict[str, list[str]]:
    del stamp
    return {commit: symbols_of(record(machine, commit, line), engine, nt, name) for commit, line in places}


def symbols_by_commit(machine: str, places: Places, engine: str, nt: int, name: str) -> dict[str, list[str]]:
    """Kernels of a class in some records, each given as (commit, line): commit to symbols, most time first."""
    found = results()
    answer: dict[str, list[str]] = _symbols((str(found.folder), found.snapshot.key), machine, places, engine, nt, name)
    return answer


def newest_records(machine: str) -> list[Record]:
    """The newest records of a machine without splits and symbols, oldest first, at most MOST_RECORDS."""
    found = results()
    return _newest_records(str(found.folder), machine, found.snapshot.key)


def show_chart(figure: Chart, name: str, alt: str) -> None:
    """Draw a chart; ``name`` is its key and the name of its saved image, ``alt`` what it shows for who cannot see it."""
    image = str(st.session_state.get("kept-image", "png"))
    component.show("plot", name, drawn(figure, name, alt, image))


def common_query() -> dict[str, str]:
    """What a link to another screen keeps of this one's URL."""
    return {key: st.query_params[key] for key in ("machine", "model", "nt", "image") if key in st.query_params}


def link_to_this_view() -> None:
    """The URL of what is on the screen, with a button that copies it."""
    pairs = [(key, value) for key in st.query_params for value in st.query_params.get_all(key)]
    address = (st.context.url or "").split("?")[0]
    with st.popover("Link to this view", icon=":material/link:"):
        st.code(f"{address}?{urlencode(pairs)}" if pairs else address, language=None, wrap_lines=True)


def describe_measurement(taken: Record, wall: Wall) -> None:
    """Machine, window, instrument, gates, and the conditions before, during and after."""
    machine, window = taken.machine, taken.window
    facts = {
        "machine": f"{machine.name}: {machine.gpu or machine.cpu}, {machine.cores} cores, {machine.os}, "
        f"driver {machine.driver or 'none'}",
        "window": f"{window.id}, {window.started} to {window.ended}",
        "its time": stages_text(window.stages_ns) if window.stages_ns else "not recorded",
        "instrument": f"{taken.instrument}, version {taken.instrument_version}",
        "model": f"{taken.model.name}, sha256 {taken.model.digest}",
        "engine": f"{wall.engine} {wall.engine_version}, {wall.backend}, ubatch {wall.ubatch}",
        "gates": ", ".join(f"{name}={value}" for name, value in sorted(wall.gates.items())) or "none",
        "ceilings": ", ".join(f"{item.name} {item.value:g} {item.unit}" for item in taken.ceilings) or "not measured",
        "quarantined": "; ".join(f"sample {item.index}: {item.reason}" for item in wall.quarantined) or "none",
        "notes": "; ".join(taken.notes) or "none",
    }
    for state in window.conditions:
        facts[state.when] = (
            f"clocks {state.clock_mhz}, {state.temperature_c} °C, {state.power_w} W, load {state.load_average}, other "
            f"processes {list(state.foreign_processes) or 'none'}, throttling {list(state.throttle_reasons) or 'none'}"
        )
    if not window.conditions:
        facts["conditions"] = "were not recorded"
    rows = pd.DataFrame({"what": list(facts), "as recorded": list(facts.values())})
    show_table(rows, f"measurement-{taken.commit[:8]}", key="measurement", wrap=True)


def show_problems(found: Results) -> None:
    if not found.problems:
        return
    with st.expander(f"{len(found.problems)} files of the results could not be read", icon=":material/warning:"):
        for problem in found.problems[:50]:
            st.markdown(f"**{for_markdown(problem.where)}**: {for_markdown(problem.what, 400)}")
        if len(found.problems) > 50:
            st.write(f"and {len(found.problems) - 50} more")


def _explain_empty(found: Results) -> None:
    """What is there and what is missing."""
    kinds = found.snapshot.sources["kind"].to_pylist()
    calibrations = sorted({path.parents[1].name for path in found.folder.glob("*/calibration/*.jsonl")})
    there = []
    if kinds.count("asv"):
        there.append(f"{kinds.count('asv')} asv result files (see Explore)")
    if calibrations:
        there.append(f"calibrations of the CI gate on {', '.join(map(for_markdown, calibrations))} (see Trust)")
    if found.problems:
        there.append(f"{len(found.problems)} files that could not be read")
    state = f"holds {'; '.join(there)}, but no decomposition record" if there else "is empty"
    if not found.folder.is_dir():
        state = "does not exist"
    st.info(
        f"No decomposition record to show: the results folder `{for_markdown(found.folder.name)}` {state}. "
        "Run `make bench` to measure this machine, or name another folder: `make dashboard RESULTS=DIR`.",
        icon=":material/folder_open:",
    )
