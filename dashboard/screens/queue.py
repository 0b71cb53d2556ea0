"""Queue: what to do next, in recoverable milliseconds, each with its arithmetic opened out."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from benchmarks.attribution.checks import best_wall
from benchmarks.attribution.recover import BEST_OF_OURS, CEILING, NONE_LEFT, PEER, ROUNDED_CEILING, Entry
from dashboard import session
from dashboard.charts.axes import style, whiskers
from dashboard.charts.chart import Chart
from dashboard.charts.roofline import roofline
from dashboard.choices import choose_commit
from dashboard.colours import ink
from dashboard.metrics import metric
from dashboard.summary import what_next
from dashboard.tables import show_table
from dashboard.text import for_hover, for_markdown


def bars(entries: list[Entry]) -> Chart:
    """Recoverable ms of each entry, with its interval."""
    names = [f"{for_hover(entry.name)}<br>{for_hover(entry.target)}" for entry in entries]
    figure = Chart()
    figure.add_bar(
        y=names,
        x=[entry.recoverable.value for entry in entries],
        orientation="h",
        marker={"color": [ink(entry.name).colour for entry in entries]},
        error_x=whiskers([entry.recoverable for entry in entries]),
        hovertemplate="%{y}: %{x:,.4g} ms<extra></extra>",
    )
    figure = style(figure, 90 + 40 * len(entries), "", legend=False, x_title=metric("recoverable_ms").axis)
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


OPENED = 8  # entries whose arithmetic is opened out; the table below holds all

st.title("What to do next")
chosen = session.selection()
found = session.results()
measured = found.commits[found.commits["commit"].isin(chosen.walls.loc[chosen.walls["engine"] == session.ENGINE, "commit"])]
if measured.empty:
    st.info(f"No wall of {session.ENGINE} for this machine, model and nt.", icon=":material/info:")
    st.stop()
commit = choose_commit("Commit", measured, "commit", str(measured["commit"].iloc[-1]))
row = chosen.walls[(chosen.walls["commit"] == commit)].sort_values(["started", "line"]).iloc[-1]
record = session.record(chosen.machine, commit, int(row["line"]))
wall = best_wall(record.walls, session.ENGINE, chosen.nt)
if wall is None:
    st.info(f"The newest window of this commit has no wall of {session.ENGINE} at nt {chosen.nt}.", icon=":material/info:")
    st.stop()
answer, entries = what_next(record, wall)
where = f"Every number was measured in window {for_markdown(record.window.id)} or counted from shapes; nt = {wall.nt}."
st.caption(f"{metric('recoverable_ms').meaning} {where}")
if not entries:
    st.info(for_markdown(answer.text, 400), icon=":material/info:")
    st.stop()


@st.fragment
def ranked() -> None:
    """The entries, most milliseconds first; a click on the target runs only this."""
    present = {entry.target for entry in entries}
    targets = [target for target in (PEER, BEST_OF_OURS, CEILING, ROUNDED_CEILING, NONE_LEFT) if target in present]
    kept = st.segmented_control("Target", ["all", *targets], default="all", required=True, key="target", bind="query-params")
    listed = [entry for entry in entries if kept in ("all", entry.target)]
    session.show_chart(bars(listed[:14]), "queue", "Recoverable milliseconds, most first")
    if kept == "all":
        st.caption("One class may stand here several times, against different targets: its entries do not add up.")
    for place, entry in enumerate(listed[:OPENED], 1):
        head = f"{place}. {for_markdown(entry.name)} against {for_markdown(entry.target_name)}: "
        head += f"{entry.recoverable.value:,.4g} ms → {entry.tokens_per_second_if_won:,.0f} tok/s"
        with st.expander(head, expanded=place == 1):
            st.code("\n".join(entry.chain), language=None)
    show_table(
        pd.DataFrame(
            [
                {
                    "class": e.name,
                    "target": e.target,
                    "rate of": e.target_name,
                    "class_ms": e.ms,
                    "recoverable_ms": e.recoverable.value,
                    "low (ms)": e.recoverable.interval.low if e.recoverable.interval else None,
                    "high (ms)": e.recoverable.interval.high if e.recoverable.interval else None,
                    "wall if won (ms)": e.wall_if_won_ms,
                    "tok/s if won": e.tokens_per_second_if_won,
                }
                for e in listed
            ]
        ),
        "queue",
        chips="class",
    )


ranked()
st.subheader("Roofline", anchor=False)
figure = roofline(wall.decomposition.classes if wall.decomposition else (), record.ceilings)
if figure is None:
    st.info("No class has both its work and its bytes on record, so there is nothing to place.", icon=":material/info:")
else:
    session.show_chart(figure, "roofline", "Rate against intensity, with ceilings")
