"""Explore: every asv series, by search, as a list, a heatmap of commits by series, small multiples, or one by one."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import session
from dashboard.benchmarks_file import Description, read_descriptions
from dashboard.charts.explore import MOST_COLUMNS, heatmap, small_multiples
from dashboard.charts.lines import over_commits
from dashboard.choices import choose
from dashboard.tables import show_table
from dashboard.text import for_markdown

MOST_ROWS, MOST_PANELS, BACK = 60, 24, 20

found = session.results()
st.title("Explore every series")
session.show_problems(found)
if found.series.empty:
    st.info(
        "There are no asv results in this folder: no `<machine>/<commit>-<environment>.json`. Run `make bench`.",
        icon=":material/folder_open:",
    )
    st.stop()
described, complaint = read_descriptions(found.folder)
if complaint:
    st.warning(for_markdown(complaint), icon=":material/warning:")
series = found.series.copy()
series["name"] = series["benchmark"] + "(" + series["parameters"].str.replace("'", "") + ")"
series["name"] = series["name"].str.removesuffix("()")
current = series["benchmark"].map(lambda name: described[name].version if name in described else "")
old = (current != "") & (series["version"] != current)
machines = sorted(series["machine"].unique())
left, middle, right = st.columns([3, 1, 2], vertical_alignment="bottom")
wanted = left.text_input("Search (words in any order)", key="q", bind="query-params", placeholder="q6_K 3325")
machine = middle.selectbox("Machine", ["all", *machines], key="on", bind="query-params")
form = right.segmented_control(
    "Show as", ["list", "heatmap", "small multiples"], default="list", required=True, key="as", bind="query-params"
)
keep = pd.Series(True, index=series.index)
for word in wanted.lower().split():
    keep &= (series["machine"] + " " + series["name"]).str.lower().str.contains(word, regex=False)
if machine != "all":
    keep &= series["machine"] == machine
older = (
    st.checkbox(f"Also {int(old.sum())} series of older benchmark versions", key="old", bind="query-params")
    if old.any()
    else False
)
if not older:
    keep &= ~old
matching = series[keep].sort_values(["machine", "name"])
if matching.empty:
    st.info(
        f"None of {len(series)} series matches {for_markdown(repr(wanted))} on {for_markdown(str(machine))}.",
        icon=":material/search_off:",
    )
    st.stop()
many = matching["machine"].nunique() > 1
labels = {
    int(row.series): f"{row.machine}: {row.name_}" if many else row.name_
    for row in matching.rename(columns={"name": "name_"}).itertuples()
}
st.caption(f"{len(matching)} of {len(series)} series, {len(found.commits):,} commits.")

if form == "heatmap":
    shown = dict(list(labels.items())[:MOST_ROWS])
    bins = min(MOST_COLUMNS, len(found.commits))
    cells = session.ask(lambda now: now.heat(list(shown), bins))
    session.show_chart(
        heatmap(cells, shown, found.commits, bins), "heatmap", "Each series against its own median over commits"
    )
    if len(labels) > len(shown):
        st.caption(f"The first {len(shown)} are drawn; search for fewer to see the others.")
elif form == "small multiples":
    shown = dict(list(labels.items())[:MOST_PANELS])
    rows = session.ask(lambda now: now.points(list(shown)))
    session.show_chart(small_multiples(rows, shown, 2), "small-multiples", "One panel a series, each with its own scale")
    if len(labels) > len(shown):
        st.caption(f"The first {len(shown)} are drawn; search for fewer to see the others.")
else:
    newest = session.ask(lambda now: now.newest_values(BACK))
    table = matching.merge(newest, on="series", how="left")
    table["change (%)"] = 100 * (table["newest"] / table["before"] - 1)
    table["unit"] = table["benchmark"].map(lambda name: described.get(name, Description()).unit)
    table = table.rename(columns={"before": f"{BACK} commits before"})
    columns = ["machine", "name", "newest", f"{BACK} commits before", "change (%)", "unit"]
    show_table(table.head(1000)[columns], "series", height=320)

st.subheader("One series", anchor=False)
options = {
    f"{row.machine}/{row.name_}": int(row.series)
    for row in matching.rename(columns={"name": "name_"}).head(1000).itertuples()
}
name = choose("Series", list(options), "series", next(iter(options)))
rows = session.ask(lambda now: now.values([options[name]]))
rows = rows[rows["value"].notna()]
about = described.get(str(matching.set_index("series").loc[options[name], "benchmark"]), Description())
if about.meaning:
    st.caption(for_markdown(about.meaning, 300))
if rows.empty:
    st.info("This series has no value: its benchmark failed or was skipped on every commit.", icon=":material/info:")
else:
    better = {"lower": "lower is better", "higher": "higher is better", "neither": ""}[about.direction]
    title = ", ".join(part for part in (about.unit, better) if part)
    session.show_chart(
        over_commits(rows.assign(line=name), title, {name: "#4477AA"}, height=360), "series-chart", f"{name} over commits"
    )
