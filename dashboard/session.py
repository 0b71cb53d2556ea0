"""What every screen shares: the results, the selection in the sidebar and the URL, and the words for what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from .configuration import Settings, settings
from .data import Reader, Results
from .text import for_markdown

ENGINE = "minfer"
PEER = "llama.cpp"


@dataclass(frozen=True, slots=True)
class Selection:
    """What the sidebar (and so the URL) says. ``walls`` and ``parts`` hold that machine, model and nt, all engines."""

    machine: str
    digest: str
    nt: int
    image_format: str
    walls: pd.DataFrame
    parts: pd.DataFrame


@st.cache_resource(max_entries=4, show_spinner=False)
def _reader(folder: str) -> Reader:
    return Reader(Path(folder))


# Streamlit leaves a hand's breadth above the title; headings are sized for a tool, not for a poster.
_CSS = """<style>
[data-testid="stMainBlockContainer"] { padding-top: 3.6rem; padding-bottom: 3rem; }
[data-testid="stMain"] h1 { font-size: 1.7rem; padding: 0.4rem 0; }
[data-testid="stMain"] h2 { font-size: 1.25rem; }
[data-testid="stMain"] h3 { font-size: 1.1rem; }
:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
@media (max-width: 640px) { [data-testid="stMainBlockContainer"] { padding-left: 0.8rem; padding-right: 0.8rem; } }
@media print { [data-testid="stSidebar"], [data-testid="stHeader"] { display: none; } }
</style>"""


def begin() -> None:
    """Called once a run, before the screen: settings and results are then at hand through ``results()``."""
    st.html(_CSS)
    found = settings()
    reader = _reader(str(found.results))
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


def selection() -> Selection:
    """The sidebar's choice of machine, model and nt. Where there is nothing to choose it says so and ends the run."""
    found = results()
    show_problems(found)
    if found.walls.empty:
        _explain_empty(found)
        st.stop()
    with st.sidebar:
        machine = st.selectbox("Machine", found.machines, key="machine", bind="query-params")
        rows = found.walls[found.walls["machine"] == machine]
        models = {f"{row.model} {row.digest[:8]}": row.digest for row in rows.drop_duplicates("digest").itertuples()}
        digest = models[st.selectbox("Model", list(models), key="model", bind="query-params")]
        rows = rows[rows["digest"] == digest]
        lengths = sorted(int(nt) for nt in rows["nt"].unique())
        nt = st.selectbox("Prompt tokens (nt)", lengths, index=len(lengths) - 1, key="nt", bind="query-params")
        image_format = st.segmented_control(
            "Chart image", ["png", "svg"], default="png", required=True, key="image", bind="query-params"
        )
    rows = rows[rows["nt"] == nt]
    parts = _reader(str(found.folder)).ask(lambda now: now.parts(str(machine), int(nt or 0)))
    parts = parts[parts["window"].isin(rows["window"])]
    return Selection(str(machine), str(digest), int(nt or 0), str(image_format), rows, parts)


def show_problems(found: Results) -> None:
    if not found.problems:
        return
    with st.expander(f"{len(found.problems)} files of the results could not be read", icon=":material/warning:"):
        for problem in found.problems[:50]:
            st.markdown(f"**{for_markdown(problem.where)}**: {for_markdown(problem.what, 400)}")
        if len(found.problems) > 50:
            st.write(f"and {len(found.problems) - 50} more")


def _explain_empty(found: Results) -> None:
    there = "is empty of records" if found.folder.is_dir() else "does not exist"
    st.info(
        f"No decomposition record to show: the results folder `{for_markdown(found.folder.name)}` {there}. "
        "Run `make bench` to measure this machine, or name another folder: `make dashboard RESULTS=DIR`.",
        icon=":material/folder_open:",
    )
