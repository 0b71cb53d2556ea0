"""``streamlit run dashboard/app.py``: is it fresh, is it trustworthy, what moved, which commit, what to do next."""

from __future__ import annotations

import sys
from pathlib import Path

# Streamlit runs this file as a script, so its package is not on the path yet.
sys.path[:0] = [entry for entry in [str(Path(__file__).resolve().parents[1])] if entry not in sys.path]

import streamlit as st  # noqa: E402

from dashboard import session  # noqa: E402

st.set_page_config(
    page_title="minfer: where did the time go", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
)
pages = [
    st.Page("pages/overview.py", title="Overview", icon=":material/stacked_bar_chart:", url_path="overview", default=True),
]
chosen = st.navigation(pages, position="sidebar")
session.begin()
chosen.run()
