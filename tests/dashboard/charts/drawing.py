"""Draws a chart or a table on an empty page, by its own script and without a server."""

from __future__ import annotations

import json

from dashboard.charts.scripts import markup, script, style_sheet


def put(page, kind: str, *all_data: dict) -> None:
    """Draw on an empty page; further data are drawn in the same place, one after the other."""
    page.set_content(f"<style>{style_sheet(kind)}</style><body>{markup(kind)}</body>")
    page.add_script_tag(
        content=f"{{{script(kind)}\nwindow.draw = (data) => {kind}({{data, parentElement: document.body}});}}"
    )
    for data in all_data:
        page.evaluate("(text) => { window.draw(JSON.parse(text)); }", json.dumps(data, allow_nan=False))
