"""Overview: is it fresh, is it trustworthy, what moved, which commit, what next."""

from __future__ import annotations

import streamlit as st

from benchmarks.attribution.change_report import Change
from dashboard import examine, session
from dashboard.charts.decomposition import stacked
from dashboard.charts.lines import over_commits
from dashboard.colours import ENGINES
from dashboard.metrics import DECOMPOSITION_VIEWS, metric
from dashboard.portrait import quoted
from dashboard.selecting import newest_walls, rates, ratios
from dashboard.summary import Answer, fresh, trustworthy, what_moved, what_next, why_expired
from dashboard.text import for_markdown

ICONS = {"good": ":green[:material/check_circle:]", "bad": ":red[:material/error:]", "unsure": ":orange[:material/help:]"}


def show_answers(answers: list[Answer]) -> None:
    """A row a question: the question leads to the screen that tells more."""
    with st.container(border=True, gap="small"):
        for answer in answers:
            left, right = st.columns([2, 7], gap="small", vertical_alignment="center")
            query = session.common_query() | answer.query
            left.page_link(f"screens/{answer.screen}.py", label=f"**{answer.question}**", query_params=query)
            right.markdown(f"{ICONS[answer.state]} {for_markdown(answer.text, 420)}")


st.title("Where did the time go?")
chosen = session.selection()
found = session.results()
ours = newest_walls(chosen.walls, session.ENGINE)
lasting: list[Change] = []
if ours.empty:
    st.info(
        f"No wall of {session.ENGINE} on this machine, model and nt; the charts show the other engines.",
        icon=":material/info:",
    )
else:
    pairs = [session.record_and_wall(chosen.machine, row) for row in ours.tail(2).itertuples()]
    record, wall = pairs[-1]
    moved, _ = what_moved(pairs[0] if len(pairs) > 1 else None, pairs[-1])
    next_step, _entries = what_next(record, wall)
    lasting = examine.wall_changes(chosen)
    which = examine.which_commit(lasting, found.commits, ours)
    answers = [fresh(record, found.known), trustworthy(record, wall), moved, which, next_step]
    show_answers(answers)
    reasons = why_expired(session.newest_records(chosen.machine), found.known, record.commit)
    if reasons:
        lines = [f"- **{for_markdown(reason.what)}** changed: {for_markdown(reason.detail, 110)}" for reason in reasons]
        head = f"The newest decomposition has expired: it speaks of the kernel mix of {record.commit[:8]}, and since then"
        st.warning("\n".join([head, *lines]), icon=":material/history:")
    with st.container(horizontal=True, gap="medium"):
        for label, value, help_text in quoted(record, wall):
            st.metric(label, value, help=help_text, width="content")

walls = chosen.walls[chosen.walls["wall_ns"].notna() & chosen.walls["best"]]
st.subheader("Prefill rate over commits", help=metric("tokens_per_second").meaning, anchor=False)
session.show_chart(
    over_commits(rates(walls), metric("tokens_per_second").axis, ENGINES, change_points=examine.marks_of(lasting)),
    "prefill-rate",
    "Prefill rate of each engine over commits, with intervals",
)

st.subheader(f"Against {session.PEER} over commits", help=metric("time_ratio").meaning, anchor=False)
ratio = ratios(walls)
if ratio.empty:
    refusals = walls.loc[walls["engine"] != session.PEER, "no_ratio"].unique()
    st.info("No ratio: " + for_markdown("; ".join(map(str, refusals)) or "nothing to compare", 400), icon=":material/info:")
else:
    st.caption(f"Same weights, same window, nt = {chosen.nt} on both sides; the dotted line is parity.")
    session.show_chart(
        over_commits(ratio, metric("time_ratio").axis, ENGINES, height=260, reference=1.0),
        "ratio",
        f"Time ratio to {session.PEER} over commits",
    )


@st.fragment
def decomposition() -> None:
    """A click on the unit or the engine runs only this."""
    engines = sorted(chosen.parts["engine"].unique(), key=lambda name: (name != session.ENGINE, name))
    left, right = st.columns([1, 2])
    engine = left.selectbox("Engine", engines, key="engine", bind="query-params")
    view = right.segmented_control(
        "Unit", list(DECOMPOSITION_VIEWS), default="ms", required=True, key="view", bind="query-params"
    )
    shown = DECOMPOSITION_VIEWS[str(view)]
    last = newest_walls(chosen.walls, str(engine))[["source", "line", "place", "wall_ns"]]
    rows = chosen.parts.merge(last, on=["source", "line", "place"])
    figure, note = stacked(rows, shown)
    st.caption(f"{metric(shown).meaning} nt = {chosen.nt}. {note}")
    session.show_chart(figure, "decomposition", f"Stacked decomposition of {engine} over commits in {view}")


st.subheader("Decomposition over commits", anchor=False)
if chosen.parts.empty:
    st.info("No wall here was decomposed.", icon=":material/info:")
else:
    decomposition()
