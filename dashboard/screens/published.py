"""The example set: the campaign rounds r37 and r47 as their author published them, through the same core."""

from __future__ import annotations

import streamlit as st

from benchmarks.attribution.ledger import ledger_of_records
from benchmarks.attribution.published import r37_record, r47_record
from dashboard import session
from dashboard.charts.portrait import wall_bars
from dashboard.charts.waterfall import waterfall
from dashboard.portrait import class_table, quoted
from dashboard.tables import show_table
from dashboard.text import for_markdown

st.title("A published example: rounds r37 and r47")
rounds = {"r37": r37_record(), "r47": r47_record()}
st.warning(
    "These figures are the publication's, from other hardware; this suite did not measure them.",
    icon=":material/menu_book:",
)
walls = {name: next(wall for wall in record.walls if wall.engine == session.ENGINE) for name, record in rounds.items()}
drawn = [(name, wall.decomposition) for name, wall in walls.items() if wall.decomposition is not None]
session.show_chart(wall_bars(drawn, share=False), "published-walls", "The walls of r37 and r47 by kernel class")
book = ledger_of_records(rounds["r37"], walls["r37"], rounds["r47"], walls["r47"])
st.subheader("From r37 to r47", anchor=False)
figure = waterfall(book, drawn[0][1].wall_ns, drawn[1][1].wall_ns, ("r37", "r47"))
session.show_chart(figure, "published-ledger", "Ledger from r37 to r47")
for name, record in rounds.items():
    st.subheader(name, anchor=False)
    with st.container(horizontal=True, gap="medium"):
        for label, value, help_text in quoted(record, walls[name]):
            st.metric(label, value, help=help_text, width="content")
    show_table(class_table(record, walls[name]), f"published-{name}", chips="class")
    st.markdown("\n".join(f"- {for_markdown(note, 300)}" for note in record.notes))
