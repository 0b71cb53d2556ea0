"""Compare: two commits of one engine, or two engines of one window. What is no pair is refused, with the reason."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from benchmarks.attribution.ledger import ledger, ledger_of_records
from benchmarks.attribution.pair import PairError, pair
from benchmarks.attribution.record import Record, Wall
from dashboard import session
from dashboard.charts.portrait import wall_bars
from dashboard.charts.waterfall import waterfall
from dashboard.choices import choose, choose_commit
from dashboard.portrait import wall_label, with_range
from dashboard.tables import show_table
from dashboard.text import for_markdown


def side(name: str, place: Any, default_back: int) -> tuple[Record, Wall]:
    """One side's choice of machine, commit, nt and wall, each with its own key in the URL."""
    with place:
        st.markdown(f"**{name.capitalize()}**")
        machine = choose("Machine", found.machines, f"{name}-machine", chosen.machine)
        rows = found.walls[(found.walls["machine"] == machine) & (found.walls["digest"] == chosen.digest)]
        if rows.empty:
            rows = found.walls[found.walls["machine"] == machine]
        measured = found.commits[found.commits["commit"].isin(rows["commit"])]
        default = str(measured["commit"].iloc[max(0, len(measured) - 1 - default_back)])
        commit = choose_commit("Commit", measured, name, default)
        rows = rows[rows["commit"] == commit].sort_values(["started", "line"])
        lengths = sorted(int(nt) for nt in rows["nt"].unique())
        nt = int(
            choose(
                "nt", [str(item) for item in lengths], f"{name}-nt", str(chosen.nt if chosen.nt in lengths else lengths[-1])
            )
        )
        record = session.record(machine, commit, int(rows.iloc[-1]["line"]))
        labels = {wall_label(wall): wall for wall in record.walls if wall.nt == nt}
        first = next((label for label, wall in labels.items() if wall.engine == session.ENGINE), next(iter(labels)))
        return record, labels[choose("Engine", list(labels), f"{name}-wall", first)]


st.title("Compare")
chosen = session.selection()
found = session.results()
left, right = st.columns(2)
before, after = side("from", left, 1), side("to", right, 0)
names = tuple(f"{record.commit[:8]} {wall.engine} @{wall.nt}" for record, wall in (before, after))
if names[0] == names[1]:
    names = (f"{names[0]} (from)", f"{names[1]} (to)")
same_engine = before[1].engine == after[1].engine
try:
    if same_engine:
        book = ledger_of_records(*before, *after)
        compared = None
    else:
        compared = pair(*before, *after)
        first, second = before[1].decomposition, after[1].decomposition
        if first is None or second is None:
            raise PairError(
                f"no ledger: {before[1].why_not_decomposed or after[1].why_not_decomposed or 'a side was not decomposed'}"
            )
        book = ledger(first, second, unit=f"prefill of {after[1].nt} tokens")
except PairError as refused:
    st.error(f"**Not a pair.** {for_markdown(str(refused), 500)}", icon=":material/block:")
    alone = [
        (label, wall.decomposition) for label, (_, wall) in zip(names, (before, after), strict=True) if wall.decomposition
    ]
    if alone:
        st.caption("Each side by itself, in shares of its own wall; no number here may be divided by the other side's.")
        session.show_chart(wall_bars(alone, share=True), "sides", "Both sides")
    st.stop()

with st.container(horizontal=True, gap="medium"):
    if compared is not None:
        st.metric(
            "Wall ratio", with_range(compared.wall_ratio, ".3g") + " ×", help=f"{names[0]} / {names[1]}", width="content"
        )
    st.metric("Won", f"{book.won_ns / 1e6:,.4g} ms", width="content")
    st.metric("Hidden tax", f"{book.tax_ns / 1e6:,.4g} ms", width="content")
    st.metric("Other losses", f"{book.lost_ns / 1e6:,.4g} ms", width="content")
    st.metric(
        "Net", with_range(book.net.scaled(1e-6)) + " ms", help="Of whole walls; positive is time won.", width="content"
    )
if book.target and book.target_net_ns is not None:
    st.caption(
        f"The change was for {for_markdown(book.target)} (the class that won most): worth "
        f"{book.target_net_ns / 1e6:,.4g} ms once the hidden taxes on other classes are paid."
    )
for note in book.notes:
    st.warning(for_markdown(note, 300), icon=":material/info:")
assert before[1].decomposition is not None and after[1].decomposition is not None
session.show_chart(
    waterfall(book, before[1].decomposition.wall_ns, after[1].decomposition.wall_ns, (names[0], names[1])),
    "waterfall",
    f"Waterfall from {names[0]} to {names[1]}",
)
st.subheader("Ledger", anchor=False)
rows = [
    {
        "class": line.name,
        "before (ms)": line.before.value / 1e6 if line.before else None,
        "after (ms)": line.after.value / 1e6 if line.after else None,
        "change (ms)": line.change.value / 1e6,
        "interval (ms)": f"{line.change.interval.low / 1e6:+.4g} to {line.change.interval.high / 1e6:+.4g}"
        if line.change.interval
        else "",
        "kind": line.kind,
    }
    for line in book.lines
]
show_table(pd.DataFrame(rows), "ledger", chips="class")
if compared is not None:
    st.subheader("Class by class", anchor=False)
    st.caption(f"Same weights, same window {for_markdown(compared.window)}, nt = {compared.nt} on both sides.")
    pairs = [
        {
            "class": item.name,
            f"{compared.a} (ms)": item.a.value / 1e6,
            f"{compared.b} (ms)": item.b.value / 1e6,
            f"{compared.a} (µs/GMAC)": item.a_cost.value if item.a_cost else None,
            f"{compared.b} (µs/GMAC)": item.b_cost.value if item.b_cost else None,
            f"ratio @{compared.nt}": item.ratio.value,
            "interval": with_range(item.ratio, ".3g"),
        }
        for item in (*compared.classes, *([compared.gemm_total] if compared.gemm_total else []))
    ]
    show_table(pd.DataFrame(pairs), "pairs", chips="class")
    if compared.only_a or compared.only_b:
        sides = ((compared.a, compared.only_a), (compared.b, compared.only_b))
        st.caption(for_markdown("; ".join(f"only {engine}: {', '.join(names) or 'none'}" for engine, names in sides), 400))
