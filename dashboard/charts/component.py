"""Drawings of our own in Streamlit's page. They take a tenth of the time that Plotly's take, and no bundle of megabytes
before the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from .scripts import Kind, markup, script, style_sheet


def show(kind: Kind, key: str, data: dict[str, Any], picked: Callable[[], None] | None = None) -> None:
    """Draw ``data``; ``picked`` is called where something was chosen in it, before the next run of the script."""
    # Registered in each run, since Streamlit's registry belongs to the server that runs, and a test starts many.
    mount = st.components.v2.component(
        f"minfer_{kind}",
        html=markup(kind),
        css=style_sheet(kind),
        js=f"{script(kind)}\nexport default {kind};\n",
        isolate_styles=False,
    )
    if picked is None:
        mount(key=key, data=data)
    else:
        mount(key=key, data=data, on_picked_change=picked)
