"""Commit: the family portrait of one wall."""

from __future__ import annotations

import streamlit as st

from dashboard import session
from dashboard.charts.portrait import average_launches, layer_timeline, split_bars, wall_bars
from dashboard.charts.timeline import launch_table, launch_timeline, timeline_sentence
from dashboard.choices import choose, choose_commit, step_buttons
from dashboard.commits import body_of
from dashboard.portrait import best_of_each, checks_table, class_table, quoted, short_labels, wall_label
from dashboard.tables import show_table
from dashboard.text import for_markdown

st.title("One commit")
chosen = session.selection()
found = session.results()
measured = found.commits[found.commits["commit"].isin(chosen.walls["commit"])]
newest = str(measured["commit"].iloc[-1])
left, right = st.columns([5, 2], vertical_alignment="bottom")
commit = choose_commit("Commit (pick one, or type the start of its hash)", measured, "commit", newest, left)
step_buttons(list(measured["commit"]), commit, "commit", right)

row = measured[measured["commit"] == commit].iloc[0]
st.subheader(for_markdown(str(row["subject"])), anchor=False)
known = found.known.by_hash.get(commit)
body = body_of(known) if known else ""
st.caption(f"`{commit}` · {for_markdown(str(row['time']))}" + (f" · {for_markdown(body, 600)}" if body else ""))

windows = (
    chosen.walls[chosen.walls["commit"] == commit].sort_values("started").drop_duplicates(["window", "line"], keep="last")
)
lines = {str(item.window): int(item.line) for item in windows.itertuples()}
window = choose("Measurement window", list(lines), "window", list(lines)[-1]) if len(lines) > 1 else next(iter(lines))
record = session.record(chosen.machine, commit, lines[window])
walls = [wall for wall in record.walls if wall.nt == chosen.nt]
labels = {wall_label(wall): wall for wall in walls}
label = choose("Engine", list(labels), "wall", next(iter(labels))) if len(labels) > 1 else next(iter(labels))
wall = labels[label]

with st.container(horizontal=True, gap="medium"):
    for name, value, help_text in quoted(record, wall):
        st.metric(name, value, help=help_text, width="content")

failed = [check for check in (*wall.checks, *record.checks) if check.passed is False]
if failed:
    said = "; ".join(f"{check.name}{f' ({check.detail})' if check.detail else ''}" for check in failed)
    word = "check" if len(failed) == 1 else "checks"
    st.warning(f"{len(failed)} {word} failed: {for_markdown(said, 400)}", icon=":material/error:")
everyone = [item for item in walls if item.decomposition is not None]


@st.fragment
def portrait() -> None:
    """A bar of classes for each engine; a click on a switch runs only this."""
    shown = best_of_each(everyone)
    with st.container(horizontal=True, gap="medium"):
        share = st.toggle("As shares of each own wall", key="share", bind="query-params")
        if len(shown) < len(everyone) and st.toggle("Slower ubatches too", key="ubatches", bind="query-params"):
            shown = everyone
    drawn = [(name, item.decomposition) for name, item in zip(short_labels(shown), shown, strict=True) if item.decomposition]
    session.show_chart(wall_bars(drawn, share=share), "portrait", "One bar of kernel classes an engine")


if everyone:
    portrait()
if wall.decomposition is None:
    st.info(
        f"This wall was not decomposed: {for_markdown(wall.why_not_decomposed or 'no reason was recorded')}",
        icon=":material/info:",
    )
    st.stop()

st.subheader("Classes", anchor=False)
st.caption(
    f"nt = {wall.nt} on both sides of every ratio; the peer is {session.PEER} in the same window, on the same weights."
)
show_table(class_table(record, wall), f"classes-{row['short']}-{wall.engine}-{wall.nt}", key="classes", chips="class")

splits = [(item.name, split) for item in wall.decomposition.classes for split in item.splits]
layers = sorted({split.layer for _, split in splits if split.layer is not None})
timeline = wall.decomposition.timeline
ONE = "one layer over time"


@st.fragment
def inside_the_classes() -> None:
    """Where inside the classes the time is; a click on the switch runs only this."""
    forms = (["operation"] if splits else []) + (["layer"] if len(layers) > 1 else []) + [ONE]
    by = str(st.segmented_control("Show", forms, default=forms[0], required=True, key="by", bind="query-params"))
    if by != ONE:
        session.show_chart(split_bars(splits, by), "splits", f"Time by {by}")
    elif timeline is not None and timeline.launches:
        st.caption(for_markdown(timeline_sentence(timeline), 300))
        session.show_chart(launch_timeline(timeline), "layer", f"Launches of layer {timeline.layer} over time")
        with st.expander(f"All {len(timeline.launches)} launches", icon=":material/table_rows:"):
            file = f"layer-{row['short']}-{wall.engine}-{wall.nt}"
            show_table(launch_table(timeline), file, key="launches", chips="class", height=400)
    else:
        end_to_end()


def end_to_end() -> None:
    """One layer of a record without start times."""
    why = "this record holds no start times, so gaps between launches are not in it"
    if len(layers) > 1:
        layer = int(choose("Layer", [str(item) for item in layers], "layer", str(layers[len(layers) // 2])))
        st.caption(f"One layer end to end, in the order of the record; {why}.")
        inside = [item for item in splits if item[1].layer == layer]
        session.show_chart(layer_timeline(inside), "layer", f"Operations of layer {layer}")
    elif inside := average_launches(splits):
        st.caption(f"One average launch of each operation, end to end: layers of one shape stand together; {why}.")
        session.show_chart(layer_timeline(inside), "layer", "One average launch of each operation")
    else:
        st.caption(f"Nothing to draw: {why}, and no operation ran more than once.")


if splits or (timeline is not None and timeline.launches):
    st.subheader("Where inside the classes", anchor=False)
    inside_the_classes()

st.subheader("Checks", anchor=False)
show_table(checks_table(record, wall), f"checks-{row['short']}", key="checks", wrap=True)
with st.expander("How it was measured", icon=":material/tune:"):
    session.describe_measurement(record, wall)
