"""Kernels: what each class costs over commits and over shapes, with what the compiler says of its kernels."""

from __future__ import annotations

import streamlit as st

from benchmarks.static.store import target_of
from dashboard import session
from dashboard.charts.axes import style
from dashboard.charts.chart import Chart
from dashboard.charts.lines import over_commits
from dashboard.choices import choose
from dashboard.colours import ENGINES, engine_colour, stacking_order
from dashboard.kernels import cost_by_shape, figures_of, figures_over_commits, kernel_rows, symbols_of
from dashboard.metrics import metric
from dashboard.tables import show_table
from dashboard.text import for_hover, for_markdown, shortened

LARGE_RANGE = 20  # times the lowest value: a linear axis would show the highest only
MOST_COMMITS = 24  # whose kernels are looked up: each is a whole record to read


def show_shapes() -> None:
    """What the class costs at each shape of the newest record."""
    st.subheader("Cost over shapes", anchor=False)
    shapes = cost_by_shape(record, name)
    if shapes.empty:
        st.info("The newest record splits this class into no shapes with known work.", icon=":material/info:")
        return
    st.caption("Every nt of the newest record, m × n × k of one product each: short prompts show their price.")
    figure = Chart()
    for engine, part in shapes.groupby("engine"):
        figure.add_scatter(
            x=part["m"],
            y=part["cost"],
            mode="markers",
            name=for_hover(str(engine)),
            marker={"size": 11, "color": engine_colour(str(engine)), "line": {"width": 1, "color": "#808080"}},
            customdata=[for_hover(f"{row.operation} {row.m}×{row.n}×{row.k}") for row in part.itertuples()],
            hovertemplate="<b>%{customdata}</b><br>%{y:,.4g} µs/GMAC<extra></extra>",
        )
    figure = style(figure, 320, metric("cost").axis, x_title="m (rows of the product)")
    lengths = sorted(set(shapes["m"]))[:6]
    figure.update_xaxes(type="log", tickvals=lengths, ticktext=[str(item) for item in lengths])
    session.show_chart(figure, "cost-over-shapes", f"Cost of {name} over shapes")
    show_table(shapes, "shapes")


def show_compiled(engine: str) -> None:
    """The class's kernels as the compiler made them, and commit by commit beside the cost."""
    symbols = symbols_of(record, engine, chosen.nt, name)
    figures, complaint = figures_of(found.folder, record.commit)
    if complaint:
        st.error(for_markdown(complaint, 300), icon=":material/error:")
    if figures is None:
        st.info(
            "No static figures (registers, spills, share of matrix instructions) are stored for this commit: "
            "`python -m benchmarks static --store measured` stores them, and needs no GPU.",
            icon=":material/info:",
        )
        if symbols:
            st.caption("Kernels seen in this class, most time first:")
            st.code("\n".join(shortened(symbol, 200) for symbol in symbols), language=None)
        return
    targets = sorted({facts.target for facts in figures.kernels})
    target = choose("Compiled for", targets, "compiled-for", target_of(record.machine.gpu, targets) or targets[0])
    past = rows[(rows["engine"] == engine) & rows["value"].notna()].sort_values("order")
    past = past.drop_duplicates("commit", keep="last").tail(MOST_COMMITS)
    places = tuple((str(row.commit), int(row.record_line)) for row in past.itertuples())
    seen = session.symbols_by_commit(chosen.machine, places, engine, chosen.nt, name)
    known = {commit: there for commit in past["commit"] if (there := figures_of(found.folder, commit)[0])}
    st.caption(
        f"The kernel of ours that took most of the class's time, compiled for {target}, beside the class's cost there."
    )
    table = figures_over_commits(past, seen, known, target).rename(columns={"cost": key})
    show_table(table.iloc[::-1], "kernels-over-commits")
    st.caption(
        f"All kernels of {for_markdown(engine)} in {for_markdown(name)} at {record.commit[:8]}, most time first, compiled "
        f"by {for_markdown(figures.compiler)}. One without figures is a library's."
    )
    show_table(kernel_rows(symbols, figures, target), "kernels")


st.title("Kernels")
chosen = session.selection()
found = session.results()
if chosen.parts.empty:
    st.info("No wall here was decomposed.", icon=":material/info:")
    st.stop()
kernels = chosen.parts[chosen.parts["launches"].notna()]
names = stacking_order(list(kernels["part"].unique()))
ours = kernels[kernels["engine"] == session.ENGINE]
measured = ours if len(ours) else kernels  # a folder may hold a peer's walls alone
largest = str(measured.groupby("part")["ns"].sum().idxmax()) if len(measured) else names[0]
name = choose("Class", names, "class", largest)
best = chosen.walls.loc[chosen.walls["best"], ["source", "line", "place"]]
rows = kernels[kernels["part"] == name].merge(best, on=["source", "line", "place"])
has_work = bool((rows["macs"] > 0).any())
key = "cost" if has_work else "class_ms"
value = rows["ns"] / 1e3 / (rows["macs"] / 1e9) if has_work else rows["ns"] / 1e6
rows = rows.assign(record_line=rows["line"], line=rows["engine"], value=value, low=float("nan"), high=float("nan"))
st.subheader(f"{metric(key).label} over commits", help=metric(key).meaning, anchor=False)
why = "" if has_work else " This class does no multiply-accumulates, so it has no cost: its time is shown."
st.caption(f"nt = {chosen.nt}; the decomposed repetition of each window.{why}")
drawn = rows[rows["value"].notna()]
figure = over_commits(drawn, metric(key).axis, ENGINES)
if len(drawn) and drawn["value"].max() > LARGE_RANGE * drawn["value"].min() > 0:
    figure.update_yaxes(type="log")
session.show_chart(figure, "cost-over-commits", f"{metric(key).label} of {name} over commits")

newest = chosen.walls.sort_values(["order", "started", "line"]).iloc[-1]
record = session.record(chosen.machine, str(newest["commit"]), int(newest["line"]))
if record.machine.gpu:  # a CPU engine's spans are no kernels that a compiler could say anything of
    st.subheader("What the compiler made of its kernels", anchor=False)
    show_compiled(session.ENGINE if session.ENGINE in set(rows["engine"]) else str(rows["engine"].iloc[-1]))
show_shapes()
