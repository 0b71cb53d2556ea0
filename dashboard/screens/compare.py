"""Compare: two commits of one engine, two engines of one window, or any two walls side by side, with what cannot be said."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from benchmarks.attribution.beside import BESIDE, HISTORY, PAIR, beside
from benchmarks.attribution.checks import best_wall
from benchmarks.attribution.ledger import Ledger, ledger, ledger_of_records
from benchmarks.attribution.pair import PairError, pair, refuse_unmatched
from benchmarks.attribution.spread import wall_figure
from dashboard import compare, session
from dashboard.charts.beside import cost_dots
from dashboard.charts.portrait import wall_bars
from dashboard.charts.waterfall import waterfall
from dashboard.choices import choose, choose_commit
from dashboard.metrics import metric
from dashboard.portrait import wall_label
from dashboard.tables import show_table
from dashboard.text import for_markdown

ANSWERS = {"good": st.success, "bad": st.error, "unsure": st.warning}
ICONS = {"good": ":material/trending_down:", "bad": ":material/trending_up:", "unsure": ":material/help:"}


def side(name: str, title: str, place: Any, default_back: int) -> compare.Side:
    """One side's choice of machine, commit, nt and wall, each with its own key in the URL."""
    with place:
        st.markdown(f"**{title}**")
        machine = choose("Machine", found.machines, f"{name}-machine", chosen.machine)
        rows = found.walls[(found.walls["machine"] == machine) & (found.walls["digest"] == chosen.digest)]
        if rows.empty:
            rows = found.walls[found.walls["machine"] == machine]
        measured = found.commits[found.commits["commit"].isin(rows["commit"])]
        default = str(measured["commit"].iloc[max(0, len(measured) - 1 - default_back)])
        commit = choose_commit("Commit", measured, name, default)
        rows = rows[rows["commit"] == commit].sort_values(["started", "line"])
        lengths = sorted(int(nt) for nt in rows["nt"].unique())
        first = chosen.nt if chosen.nt in lengths else lengths[-1]
        nt = int(choose("Prompt tokens (nt)", [str(item) for item in lengths], f"{name}-nt", str(first)))
        record = session.record(machine, commit, int(rows.iloc[-1]["line"]))
        labels = {wall_label(wall): wall for wall in record.walls if wall.nt == nt}
        ours = next((label for label, wall in labels.items() if wall.engine == session.ENGINE), next(iter(labels)))
        return record, labels[choose("Engine", list(labels), f"{name}-wall", ours)]


def presets() -> None:
    """The usual questions, since eight choices are many.

    Buttons: a link to the screen that one is on changes it without changing the browser's address.
    """
    rows = found.walls[(found.walls["machine"] == chosen.machine) & (found.walls["digest"] == chosen.digest)]
    measured = found.commits[found.commits["commit"].isin(rows["commit"])]
    newest = str(measured["commit"].iloc[-1])
    row = rows[(rows["commit"] == newest) & (rows["nt"] == chosen.nt)].sort_values(["started", "line"])
    base = session.common_query()
    links = {"The last two commits": base}
    if len(row):
        record = session.record(chosen.machine, newest, int(row.iloc[-1]["line"]))
        ours = best_wall(record.walls, session.ENGINE, chosen.nt)
        engines = dict.fromkeys(wall.engine for wall in record.walls if wall.nt == chosen.nt and wall.decomposition)
        others = {engine: best_wall(record.walls, engine, chosen.nt) for engine in engines if engine != session.ENGINE}
        gated = [wall for wall in record.walls if ours and wall.nt == ours.nt and wall.engine == ours.engine]
        others["other gates"] = next((wall for wall in gated if ours and wall.gates != ours.gates), None)
        same = {"from": newest[:12], "to": newest[:12]}
        for name, wall in others.items():
            if wall is not None:
                links[f"{session.ENGINE} and {name}"] = base | same | {"to-wall": wall_label(wall)}
    other = next((machine for machine in found.machines if machine != chosen.machine), None)
    if other:
        links[f"{chosen.machine} and {other}"] = base | {"from": newest[:12], "to-machine": other}
    shown = st.query_params.to_dict()
    with st.container(horizontal=True, gap="small"):
        for place, (label, query) in enumerate(links.items()):
            kind: Literal["primary", "secondary"] = "primary" if query == shown else "secondary"
            ask = st.query_params.from_dict
            st.button(for_markdown(label), key=f"preset-{place}", type=kind, on_click=ask, args=(query,), width="content")


def show_waterfall(book: Ledger, words: dict[str, str] | None) -> None:
    first, second = before[1].decomposition, after[1].decomposition
    assert first is not None and second is not None
    figure = waterfall(book, first.wall_ns, second.wall_ns, names, words)
    session.show_chart(figure, "waterfall", f"From {names[0]} to {names[1]}, class by class")
    show_table(compare.ledger_rows(book, names, words), "ledger", chips="class")
    untraced = [wall_figure(wall).value / 1e6 for _, wall in (before, after)]
    st.caption(
        f"Bars and rows: one traced repetition of each side, {first.wall_ns / 1e6:,.4g} and {second.wall_ns / 1e6:,.4g} ms; "
        f"the intervals are of all repetitions. The untraced medians are {untraced[0]:,.4g} and {untraced[1]:,.4g} ms."
    )


st.title("Compare")
chosen = session.selection()
found = session.results()
presets()
answer = st.container()  # the answer stands first, though it is known last
with st.expander("Choose what is compared", icon=":material/tune:"):
    left, right = st.columns(2)
    before, after = side("from", "First", left, 1), side("to", "Second", right, 0)
seen = beside(*before, *after)
names = compare.side_names(seen, before, after)
decomposed = before[1].decomposition is not None and after[1].decomposition is not None

if seen.kind == HISTORY and decomposed:
    book = ledger_of_records(*before, *after)
    sentence, state = compare.history_answer(book, names)
    with answer:
        ANSWERS[state](for_markdown(sentence, 300), icon=ICONS[state])
    if state != "unsure":
        with st.container(horizontal=True, gap="medium"):
            amounts = {"won_ms": book.won_ns, "tax_ms": book.tax_ns, "lost_ms": book.lost_ns, "net_ms": book.net_ns}
            for key, ns in amounts.items():
                if ns:
                    st.metric(metric(key).label, f"{ns / 1e6:,.3g} ms", help=metric(key).meaning, width="content")
    if state != "unsure" and book.tax_ns and book.target and book.target_net_ns is not None:
        st.caption(
            f"{for_markdown(book.target)} won most. With what other classes lost beside it, that is worth "
            f"{book.target_net_ns / 1e6:,.3g} ms."
        )
    st.caption(" ".join(map(for_markdown, seen.clauses)))
    show_waterfall(book, None)
elif seen.kind == PAIR:
    both = pair(*before, *after)
    answer.info(for_markdown(compare.pair_answer(both, names), 300), icon=":material/balance:")
    st.caption(f"A pair: same weights, same window {for_markdown(both.window)}, nt = {both.nt} on both sides.")
    for clause in seen.clauses:
        st.caption(for_markdown(clause, 300))
    if before[1].decomposition is not None and after[1].decomposition is not None:
        book = ledger(before[1].decomposition, after[1].decomposition, unit=f"prefill of {both.nt} tokens")
        show_waterfall(book, compare.NEUTRAL)
        st.subheader("Cost, class by class", anchor=False)
        figure = cost_dots(seen.rows, names)
        if figure is not None:
            session.show_chart(figure, "costs", "Cost of each class on both sides")
        show_table(compare.pair_rows(both, names), "pairs", chips="class")
        if both.only_a or both.only_b:
            sides = zip(names, (both.only_a, both.only_b), strict=True)
            st.caption(for_markdown("; ".join(f"only {name}: {', '.join(only) or 'none'}" for name, only in sides), 400))
else:
    answer.warning(for_markdown(" ".join(seen.clauses), 600), icon=":material/block:")
    show_table(compare.speed_rows((before, after), names), "speeds")
    if seen.kind == BESIDE and seen.rows:
        figure = cost_dots(seen.rows, names)
        if figure is not None:
            st.subheader("Cost, class by class", anchor=False)
            session.show_chart(figure, "costs", "Cost of each class on both sides")
        show_table(compare.class_rows(seen, names), "classes", chips="class")
    if seen.same_work and before[1].decomposition is not None and after[1].decomposition is not None:
        st.subheader("Milliseconds, since the work is the same", anchor=False)
        show_waterfall(ledger(before[1].decomposition, after[1].decomposition), compare.NEUTRAL)
    with st.expander("Why there is no ratio", icon=":material/help:"):
        try:
            refuse_unmatched(*before, *after)
        except PairError as refused:
            st.write(for_markdown(str(refused), 500))

if not decomposed:
    why = before[1].why_not_decomposed or after[1].why_not_decomposed or "no reason was recorded"
    st.info(f"No classes to compare, a side was not decomposed: {for_markdown(why, 300)}", icon=":material/info:")
elif seen.kind != HISTORY:
    st.subheader("Shares of each own wall", anchor=False)
    alone = [
        (name, wall.decomposition) for name, (_, wall) in zip(names, (before, after), strict=True) if wall.decomposition
    ]
    session.show_chart(wall_bars(alone, share=True), "sides", "Both sides, each as shares of its own wall")
