"""Trust: the noise of each machine, the CI gate's own error rates, and every sample that was put aside."""

from __future__ import annotations

import streamlit as st

from benchmarks.attribution.statistics.calibration import Calibration
from dashboard import session, trust
from dashboard.charts.axes import style
from dashboard.charts.chart import Chart
from dashboard.charts.lines import over_commits
from dashboard.colours import ENGINES
from dashboard.tables import show_table
from dashboard.text import for_hover, for_markdown

GATE_TRIALS = 46  # pixels of height for each


def show_gate(machine: str, gate: list[Calibration]) -> None:
    """Rates of the newest calibration with their intervals, and all calibrations as a table."""
    table = trust.gate_table(gate)
    newest = table[(table["time"] == table["time"].max()) & table["rate (%)"].notna()]
    figure = Chart()
    figure.add_scatter(
        x=newest["rate (%)"],
        y=[for_hover(what, 60).replace(": ", ":<br>") for what in newest["trials of"]],
        mode="markers",
        marker={"size": 11, "color": "#4477AA"},
        error_x={
            "array": newest["high (%)"] - newest["rate (%)"],
            "arrayminus": newest["rate (%)"] - newest["low (%)"],
            "color": "#808080",
        },
        hovertemplate="%{y}: %{x:.3g} %<extra></extra>",
    )
    figure = style(
        figure, 110 + GATE_TRIALS * len(newest), "", legend=False, x_title="share of verdicts (%), with 95 % interval"
    )
    figure.update_yaxes(type="category", autorange="reversed")
    workloads = ", ".join(sorted(newest["workload"].unique()))
    said = for_markdown(trust.gate_sentence(gate[-1]), 400)
    st.markdown(f"**{for_markdown(machine)}**, workload {for_markdown(workloads)}: {said}")
    session.show_chart(figure, f"gate-{machine}", "Rates of false alarms and of found slowdowns of the CI gate")
    show_table(table, f"gate-calibration-{machine}")


def show_gates() -> None:
    """The CI gate's own error rates, machine by machine."""
    st.subheader("The CI gate's own error rates", anchor=False)
    folders = trust.calibrated_machines(found.folder)
    for machine in folders:
        gate, complaint = trust.calibrations(found.folder, machine)
        if complaint:
            st.warning(for_markdown(complaint, 400), icon=":material/warning:")
        if gate:
            show_gate(machine, gate)
    if not folders:
        st.info(
            "Not measured: how often the gate calls identical commits slower, and how often it finds a known slowdown. "
            "Run `python -m benchmarks calibrate`.",
            icon=":material/info:",
        )


st.title("Can the numbers be trusted?")
found = session.results()
if found.walls.empty:
    show_gates()  # a folder may hold calibrations alone; what follows needs records
chosen = session.selection()
records = session.newest_records(chosen.machine)
st.subheader("Failed checks", anchor=False)
failed = trust.failed_checks(chosen.walls)
if failed.empty:
    st.success(f"No check failed on any of the {len(chosen.walls)} walls of this selection.", icon=":material/check_circle:")
else:
    show_table(failed, "failed-checks")
st.subheader("Quarantined samples", anchor=False)
aside = trust.quarantined(records)
if aside.empty:
    st.success(f"None in the newest {len(records)} windows of this machine.", icon=":material/check_circle:")
else:
    show_table(aside.head(200), "quarantined")
st.subheader("Co-tenants and throttling", anchor=False)
seen = trust.disturbed(records)
if seen.empty:
    st.success(f"None seen in the newest {len(records)} windows of this machine.", icon=":material/check_circle:")
else:
    show_table(seen.head(200), "disturbed")

st.subheader("Noise by machine", anchor=False)
st.caption(
    "Inside: half the interval of a window's median, as a share of it. From window to window: the change from one measured "
    "commit to the next; the median, which a few real steps do not move."
)
show_table(trust.noise_by_machine(found.walls), "noise")
walls = chosen.walls[chosen.walls["best"] & chosen.walls["wall_ns"].notna()]
spread = walls.assign(
    line=walls["engine"],
    value=100 * (walls["high_ns"] - walls["low_ns"]) / 2 / walls["wall_ns"],
    low=float("nan"),
    high=float("nan"),
)
if spread["value"].notna().any():
    chart = over_commits(
        spread[spread["value"].notna()], "Half interval of the wall (± %, lower is better)", ENGINES, height=240
    )
    session.show_chart(chart, "noise-over-commits", "Half the interval of each window's wall over commits")

show_gates()
