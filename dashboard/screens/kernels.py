"""Kernels: what each class costs over commits and over shapes, with what the compiler says of its kernels."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from dashboard import session
from dashboard.charts.axes import style
from dashboard.charts.lines import over_commits
from dashboard.choices import choose
from dashboard.colours import ENGINES, engine_colour, stacking_order
from dashboard.kernels import cost_by_shape, static_figures
from dashboard.metrics import metric
from dashboard.tables import show_table
from dashboard.text import for_hover, shortened

st.title("Kernels")
chosen = session.selection()
found = session.results()
if chosen.parts.empty:
    st.info("No wall here was decomposed.", icon=":material/info:")
    st.stop()
kernels = chosen.parts[chosen.parts["launches"].notna()]
names = stacking_order(list(kernels["part"].unique()))
largest = (
    str(kernels[kernels["engine"] == session.ENGINE].groupby("part")["ns"].sum().idxmax()) if len(kernels) else names[0]
)
name = choose("Class", names, "class", largest)
best = chosen.walls.loc[chosen.walls["best"], ["source", "line", "place"]]
rows = kernels[kernels["part"] == name].merge(best, on=["source", "line", "place"])
has_work = bool((rows["macs"] > 0).any())
key = "cost" if has_work else "class_ms"
value = rows["ns"] / 1e3 / (rows["macs"] / 1e9) if has_work else rows["ns"] / 1e6
rows = rows.assign(line=rows["engine"], value=value, low=float("nan"), high=float("nan"))
st.subheader(f"{metric(key).label} over commits", help=metric(key).meaning, anchor=False)
why = "" if has_work else " This class does no multiply-accumulates, so it has no cost: its time is shown."
st.caption(f"nt = {chosen.nt}; the decomposed repetition of each window.{why}")
figure = over_commits(rows[rows["value"].notna()], metric(key).axis, ENGINES)
session.show_chart(figure, "cost-over-commits", f"{metric(key).label} of {name} over commits")

st.subheader("Cost over shapes", anchor=False)
newest = chosen.walls.sort_values(["order", "started", "line"]).iloc[-1]
record = session.record(chosen.machine, str(newest["commit"]), int(newest["line"]))
shapes = cost_by_shape(record, name)
if shapes.empty:
    st.info("The newest record splits this class into no shapes with known work.", icon=":material/info:")
else:
    st.caption("Every nt of the newest record, m × n × k of one product each: short prompts show their price.")
    figure = go.Figure()
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
    figure.update_xaxes(type="log")
    session.show_chart(figure, "cost-over-shapes", f"Cost of {name} over shapes")
    show_table(shapes, "shapes")

st.subheader("Static figures", anchor=False)
table = static_figures(found, chosen.machine)
taken = [wall.decomposition for wall in record.walls if wall.decomposition]
symbols = [symbol for part in taken for item in part.classes if item.name == name for symbol in item.symbols]
if symbols:
    st.caption("Kernels seen in this class, most time first:")
    st.code("\n".join(dict.fromkeys(shortened(symbol, 200) for symbol in symbols)), language=None)
if table.empty:
    st.info(
        "No static figures (registers, spills, share of matrix instructions) are stored for this machine; `make bench` "
        "stores them where nvcc or NVRTC is installed.",
        icon=":material/info:",
    )
else:
    targets = sorted(table["target"].dropna().unique())
    target = choose("Compiled for", targets, "compiled-for", targets[0])
    show_table(table[table["target"] == target].drop(columns="target"), "static-figures")
