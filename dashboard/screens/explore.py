"""Explore: every asv series, by search, as a list, a heatmap of commits by series, small multiples, or one by one."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import session
from dashboard.benchmarks_file import Description, read_descriptions
from dashboard.charts.lines import over_commits
from dashboard.charts.many import MOST_COLUMNS, POINTS_A_PANEL, Form, many_data, show_many
from dashboard.choices import choose
from dashboard.series_names import named
from dashboard.tables import show_table
from dashboard.text import for_markdown

MOST_ROWS, MOST_PANELS, BACK = 60, 24, 20
BEFORE = f"up to {BACK} commits before"
FORMS = ["list", "heatmap", "small multiples"]

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
series["name"] = named(series)
series["unit"] = series["benchmark"].map(lambda name: described.get(name, Description()).unit)
current = series["benchmark"].map(lambda name: described[name].version if name in described else "")
old = (current != "") & (series["version"] != current)
machines = sorted(series["machine"].unique())
left, right = st.columns([3, 1], vertical_alignment="bottom")
wanted = left.text_input("Search (words in any order)", key="q", bind="query-params", placeholder="q6_K 3325")
machine = right.selectbox("Machine", ["all", *machines], key="on", bind="query-params")
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
valued = series["series"].isin(session.ask(lambda now: now.measured_series))
matching = series[keep & valued].sort_values(["machine", "name"])
empty = int((keep & ~valued).sum())
left_out = f" {empty} more match but have no value on any commit: their benchmark was skipped or failed." if empty else ""
if matching.empty:
    where = f"{for_markdown(repr(wanted))} on {'any machine' if machine == 'all' else for_markdown(str(machine))}"
    st.info(f"None of the {int(valued.sum())} series with values matches {where}.{left_out}", icon=":material/search_off:")
    st.stop()
addresses = (matching["machine"] + "/" + matching["name"]).to_list()  # what the URL says of a series


@st.fragment
def all_of_them() -> None:
    """The list, the heatmap or the small multiples; a click on the switch runs only this."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    form = left.segmented_control("Show as", FORMS, default="list", required=True, key="as", bind="query-params")
    with right:
        session.link_to_this_view()
    st.caption(f"{len(matching)} of {int(valued.sum())} series, {len(found.commits):,} commits.{left_out}")
    if form == "list":
        newest = session.ask(lambda now: now.newest_values(BACK))
        table = matching.merge(newest, on="series", how="left")
        table["change (%)"] = 100 * (table["newest"] / table["before"] - 1)
        table = table.rename(columns={"before": BEFORE})
        columns = ["machine", "name", "newest", "unit", "change (%)", BEFORE]
        show_table(table.head(1000)[columns], "series", height=320)
        return
    as_map = form == "heatmap"
    shown = matching.head(MOST_ROWS if as_map else MOST_PANELS)
    colours = (
        "Orange: above the series' own median; purple: below; blank: not measured." if as_map else "Each on its own scale."
    )
    more = f" The first {len(shown)} are drawn; search for fewer to see the others." if len(shown) < len(matching) else ""
    st.caption(f"{colours} A click shows the series below.{more}")
    several = shown["machine"].nunique() > 1
    names = [address if several else name for address, name in zip(addresses, shown["name"], strict=False)]
    stretches = session.ask(lambda now: now.stretches(shown["series"].to_list(), MOST_COLUMNS if as_map else POINTS_A_PANEL))
    alt = "Each series against its own median over commits" if as_map else "One panel a series, each with its own scale"
    kind: Form = "heatmap" if as_map else "small multiples"
    data = many_data(kind, stretches, names, shown["unit"].to_list(), alt, str(st.session_state.get("kept-image", "png")))

    def pick(place: int) -> None:
        st.query_params["series"] = addresses[place]
        st.session_state["explore-picked"] = True

    show_many(data, pick)
    if st.session_state.pop("explore-picked", False):
        st.rerun()


@st.fragment
def one_of_them() -> None:
    """One series over commits; choosing another runs only this."""
    st.subheader("One series", anchor=False)
    options = dict(zip(addresses[:1000], matching["series"].head(1000), strict=True))
    address = choose("Series", list(options), "series", addresses[0])
    rows = session.ask(lambda now: now.values([options[address]])).dropna(subset=["value"])
    about = described.get(str(matching.set_index("series").loc[options[address], "benchmark"]), Description())
    if about.meaning:
        st.caption(for_markdown(about.meaning, 300))
    better = {"lower": "lower is better", "higher": "higher is better", "neither": ""}[about.direction]
    title = ", ".join(part for part in (about.unit, better) if part)
    session.show_chart(
        over_commits(rows.assign(line=address), title, {address: "#4477AA"}, height=360),
        "series-chart",
        f"{address} over commits",
    )


all_of_them()
one_of_them()
