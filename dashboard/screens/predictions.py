"""Predictions: what commits said that they would move, against what was measured."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from benchmarks.attribution.predictions import calibration, outcomes
from dashboard import session
from dashboard.charts.said import said_and_measured
from dashboard.portrait import with_range
from dashboard.tables import show_table
from dashboard.text import for_markdown

st.title("Said and measured")
chosen = session.selection()
found = session.results()
records = [record for record in session.newest_records(chosen.machine) if record.model.digest == chosen.digest]
joined, broken = outcomes(found.known.newest_first, records, machine=chosen.machine, engine=session.ENGINE)
if not joined:
    st.info(
        "No commit of this history predicts anything. A commit says what it will move with a line in its message, "
        "before it is measured: `Predicts: q6_K GEMM -900 ms @3325`.",
        icon=":material/info:",
    )
else:
    score = calibration(joined)
    with st.container(horizontal=True, gap="medium"):
        st.metric(
            "Hits",
            str(score.hits),
            help="Same sign and within a factor of two, or inside the measured interval.",
            width="content",
        )
        st.metric("Misses", str(score.misses), width="content")
        st.metric("Not measured", str(score.unmeasured), width="content")
        st.metric("Wrong sign", str(score.wrong_sign), width="content")
        ratio = "none" if score.median_ratio is None else f"{score.median_ratio:.2f}"
        st.metric(
            "Measured / said", ratio, help="Median where the sign was right; under 1 promises too much.", width="content"
        )
    for unit in sorted({item.prediction.unit for item in joined if item.measured is not None}):
        st.subheader(f"In {for_markdown(unit)}", anchor=False)
        chart = said_and_measured(joined, unit)
        session.show_chart(chart, f"said-{unit.replace('/', '-')}", f"Measured against predicted change in {unit}")
    rows = [
        {
            "verdict": item.verdict,
            "commit": item.prediction.commit[:8],
            "of": item.prediction.subject,
            "nt": item.prediction.nt,
            "said": f"{item.prediction.change:+g} {item.prediction.unit}",
            "measured": f"{with_range(item.measured, '+,.3g')} {item.prediction.unit}" if item.measured else "",
            "detail": item.detail,
        }
        for item in joined
    ]
    known = [row for row in rows if row["measured"]]
    if known:
        show_table(pd.DataFrame(known), "predictions")
    pending = [row for row in rows if not row["measured"]]
    if pending:
        with st.expander(f"{len(pending)} more are not measured on this machine", icon=":material/pending:"):
            show_table(pd.DataFrame(pending).drop(columns=["measured", "verdict"]), "unmeasured", height=400)
if broken:
    st.subheader("Lines that want to be predictions", anchor=False)
    bad = [{"commit": item.commit[:8], "line": item.line, "text": item.text, "why not": item.reason} for item in broken]
    show_table(pd.DataFrame(bad), "bad-trailers")
