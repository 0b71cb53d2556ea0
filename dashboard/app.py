"""``streamlit run dashboard/app.py``: is it fresh, is it trustworthy, what moved, which commit, what to do next."""

from __future__ import annotations

import sys
from pathlib import Path

# Streamlit runs this file as a script, so its package is not on the path yet.
sys.path[:0] = [entry for entry in [str(Path(__file__).resolve().parents[1])] if entry not in sys.path]

import streamlit as st  # noqa: E402

from dashboard import warm  # noqa: E402

warm.wait()

from dashboard import session  # noqa: E402

st.set_page_config(
    page_title="minfer: where did the time go", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
)
# The folder is not called pages/: Streamlit would then run a screen by itself where its URL is opened first, without this
# file before it.
screens = [
    st.Page("screens/overview.py", title="Overview", icon=":material/stacked_bar_chart:", url_path="overview", default=True),
    st.Page("screens/commit.py", title="Commit", icon=":material/commit:", url_path="commit"),
    st.Page("screens/compare.py", title="Compare", icon=":material/compare_arrows:", url_path="compare"),
    st.Page("screens/queue.py", title="Queue", icon=":material/format_list_numbered:", url_path="queue"),
    st.Page("screens/kernels.py", title="Kernels", icon=":material/memory:", url_path="kernels"),
    st.Page("screens/predictions.py", title="Predictions", icon=":material/target:", url_path="predictions"),
    st.Page("screens/changes.py", title="Changes", icon=":material/timeline:", url_path="changes"),
    st.Page("screens/trust.py", title="Trust", icon=":material/verified:", url_path="trust"),
    st.Page("screens/explore.py", title="Explore", icon=":material/search:", url_path="explore"),
    st.Page("screens/import_trace.py", title="Import", icon=":material/upload_file:", url_path="import"),
    st.Page("screens/published.py", title="Published example", icon=":material/menu_book:", url_path="published"),
]
chosen = st.navigation(screens, position="sidebar")
session.begin()
chosen.run()
