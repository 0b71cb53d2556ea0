"""Changes: every change point, triaged; decisions are kept as files under results/ that git can merge."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pandas as pd
import streamlit as st

from benchmarks.attribution.change_report import Change
from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.statistics.alarms import FEWEST_POINTS
from benchmarks.attribution.triage import State, Triage, remove_triage, write_triage
from dashboard import examine, session
from dashboard.changes import acceptance_row, acceptances, decisions, direction_word, possible_commits, size
from dashboard.charts.lines import over_commits
from dashboard.choices import choose
from dashboard.selecting import newest_walls
from dashboard.tables import show_table
from dashboard.text import for_markdown


def machine_of_asv() -> str:
    """A folder of asv's results alone has no models and lengths to choose from, only machines."""
    session.show_problems(found)
    machines = sorted(found.series["machine"].unique())
    with st.sidebar:
        machine = choose("Machine", machines, "machine", machines[0], keep=True)
        choose("Chart image", ["png", "svg"], "image", "png", keep=True)
        session.link_to_this_view()
    return machine


st.title("Changes")
found = session.results()
chosen = session.selection() if found.series.empty or not found.walls.empty else None
machine = chosen.machine if chosen else machine_of_asv()
decided, complaint = decisions(found.folder)
if complaint:
    st.error(for_markdown(complaint, 400), icon=":material/error:")
accepted, unread = acceptances(found.folder, machine)
if unread:
    st.error(for_markdown(unread, 400), icon=":material/error:")
if accepted:
    with st.expander(f"{len(accepted)} regressions that a commit's trailer let pass", icon=":material/gavel:"):
        show_table(pd.DataFrame([acceptance_row(item) for item in accepted]), "accepted")
left, right = st.columns([1, 2], vertical_alignment="bottom")
sources = ["records", "asv"] if chosen else ["asv"]
source = left.segmented_control("Series", sources, default=sources[0], required=True, key="of", bind="query-params")
wanted = ""
if source == "asv":
    wanted = right.text_input("Search (words in any order)", key="q", bind="query-params", placeholder="q6_K 3325")
looked = examine.examine_records(chosen) if chosen and source == "records" else examine.examine_asv(machine, wanted)
if looked.left_out:
    st.warning(
        f"{looked.left_out} series were not examined: too many points at once. Search for fewer.",
        icon=":material/filter_alt:",
    )
commits = found.commits.set_index("commit")


def row_of(change: Change) -> dict[str, object]:
    known = commits.loc[change.commit] if change.commit in commits.index else None
    span = possible_commits(change)
    return {
        "commit": change.commit[:8],
        "date": "" if known is None else str(known["time"])[:10],
        "change": size(change),
        "meaning": direction_word(change),
        "could be any of": len(span),
        "series": change.history.name,
        "decision": change.decision.words if change.decision else "open",
        "subject": "" if known is None else str(known["subject"]),  # last: it may be long, and the others are what one reads
    }


still_open = [change for change in looked.changes if change.decision is None]
st.caption(f"{looked.series} series examined; {len(looked.changes)} changes, {len(still_open)} of them undecided.")
which = st.segmented_control(
    "Show", ["undecided", "all"], default="undecided", required=True, key="show", bind="query-params"
)
listed = still_open if which == "undecided" else list(looked.changes)
if not listed:
    measured = len(newest_walls(chosen.walls, session.ENGINE)) if chosen else FEWEST_POINTS
    if source == "records" and measured < FEWEST_POINTS:
        st.info(
            f"{measured} commits are measured here; lasting changes are told from noise from {FEWEST_POINTS} on, so none "
            "can be found yet. Compare sets two commits side by side.",
            icon=":material/help:",
        )
    else:
        st.success("Nothing to decide here.", icon=":material/check_circle:")
    st.stop()
show_table(pd.DataFrame([row_of(change) for change in listed]), "changes", height=400)

st.subheader("One change", anchor=False)
keys = {f"{change.commit[:12]} {change.history.name}": change for change in listed}
picked = keys[choose("Change", list(keys), "change", next(iter(keys)))]
history = picked.history
rows = pd.DataFrame({"commit": history.commits, "value": history.values}).merge(found.commits, on="commit")
rows = rows.assign(line=history.name, low=float("nan"), high=float("nan"))
marks = examine.marks_of(
    [
        change
        for change in looked.changes
        if change.history.name == history.name and change.history.machine == history.machine
    ]
)
session.show_chart(
    over_commits(rows, history.unit, {history.name: "#4477AA"}, change_points=marks),
    "one-change",
    f"{history.name} over commits",
)
spanned = possible_commits(picked)
span = (
    ""
    if len(spanned) == 1
    else f" It could as well be any of {len(spanned)} commits, {spanned[0][:8]} to {spanned[-1][:8]}."
)
st.markdown(f"{for_markdown(size(picked))}, {for_markdown(direction_word(picked))}, at `{picked.commit[:12]}`.{span}")
at = history.commits.index(picked.commit)
if at and chosen:
    query = session.common_query() | {"from": history.commits[at - 1][:12], "to": picked.commit[:12]}
    st.page_link(
        "screens/compare.py", label="Compare the commits on both sides", query_params=query, icon=":material/compare_arrows:"
    )
if picked.decision:
    st.info(for_markdown(picked.decision.words, 400), icon=":material/gavel:")
if session.current_settings().read_only:
    st.caption("This dashboard is read-only: decisions are made where the results folder is.")
    st.stop()
with st.form("triage", border=True):
    meanings = ["real and wanted", "no change of the code", "handled elsewhere"]
    states: tuple[State, ...] = get_args(State)
    state: State = st.radio("Decision", states, horizontal=True, captions=meanings)
    reason = st.text_input("Why")
    link = st.text_input("Link (for linked)")
    author = st.text_input("Your name")
    if st.form_submit_button("Keep the decision", type="primary"):
        decision = Triage(
            history.machine, history.name, picked.commit, state, reason, author, datetime.now(UTC).strftime("%Y-%m-%d"), link
        )  # fmt: skip
        try:
            path = write_triage(found.folder, decision)
        except UserFacingError as error:
            st.error(for_markdown(str(error), 400), icon=":material/error:")
        else:
            st.session_state["kept"] = f"Kept in {path.parent.name}/{path.name}; commit it to share it."
            st.rerun()
if "kept" in st.session_state:
    st.success(for_markdown(st.session_state.pop("kept")), icon=":material/check_circle:")
if picked.decision and st.button("Take the decision back", icon=":material/undo:"):
    remove_triage(found.folder, picked.decision)
    st.rerun()
