"""Overview: is it fresh, is it trustworthy, what moved, which commit, what next."""

from __future__ import annotations

import streamlit as st

from dashboard import session
from dashboard.charts.axes import chart_options
from dashboard.charts.decomposition import stacked
from dashboard.charts.lines import over_commits
from dashboard.colours import ENGINES
from dashboard.metrics import DECOMPOSITION_VIEWS, metric

st.title("Where did the time go?")
chosen = session.selection()

st.subheader("Prefill rate over commits", help=metric("tokens_per_second").meaning)
walls = chosen.walls[chosen.walls["wall_ns"].notna()]
rate = walls.assign(
    line=walls["engine"],
    value=walls["nt"] / (walls["wall_ns"] / 1e9),
    low=walls["nt"] / (walls["highest_ns"] / 1e9),
    high=walls["nt"] / (walls["lowest_ns"] / 1e9),
)
st.plotly_chart(
    over_commits(rate, metric("tokens_per_second").axis, ENGINES),
    key="rate_chart",
    config=chart_options("prefill-rate", chosen.image_format),
    alt="Prefill rate of each engine over commits",
)

st.subheader("Decomposition over commits")
engines = sorted(chosen.parts["engine"].unique(), key=lambda name: (name != session.ENGINE, name))
left, right = st.columns([1, 2])
engine = left.selectbox("Engine", engines, key="engine", bind="query-params")
view = right.segmented_control(
    "Unit", list(DECOMPOSITION_VIEWS), default="ms", required=True, key="view", bind="query-params"
)
shown = DECOMPOSITION_VIEWS[str(view)]
rows = chosen.parts[chosen.parts["engine"] == engine]
rows = rows.merge(
    chosen.walls[["commit", "window", "engine", "line", "place", "wall_ns"]],
    on=["commit", "window", "engine", "line", "place"],
)
newest = rows.sort_values(["order", "line"]).drop_duplicates(["commit", "part"], keep="last")
figure, note = stacked(newest, shown)
st.caption(f"{metric(shown).meaning} nt = {chosen.nt}. {note}")
st.plotly_chart(
    figure,
    key="stack_chart",
    config=chart_options("decomposition", chosen.image_format),
    alt="Stacked decomposition over commits",
)
