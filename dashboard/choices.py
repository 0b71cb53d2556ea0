"""Choices whose value stands in the URL under its own short name: a commit by its hash, typed or picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from .text import for_markdown, shortened

RECENT = 200
"""Commits offered in a list; any other is reached by typing the start of its hash."""


def url_value(key: str) -> str | None:
    """The URL's value of ``key``, None where it has none."""
    return st.query_params.get(key)


def choose(
    label: str,
    options: Sequence[str],
    key: str,
    default: str,
    show: Callable[[str], str] = str,
    place: Any = st,
    keep: bool = False,
) -> str:
    """A select box whose option itself (not its label) is the URL's value; an unknown one falls back to ``default``.

    ``keep`` carries the choice to the other screens, whose links start with an empty query, and writes it into their URLs.
    """
    kept = f"kept-{key}"
    candidates = [st.query_params.get(key), st.session_state.get(kept) if keep else None]
    current = next((value for value in candidates if value is not None and value in options), default)
    if keep:
        st.session_state[kept] = current
        if current != default and st.query_params.get(key) != current:
            st.query_params[key] = current
    widget = f"choice-{key}"
    if st.session_state.get(widget) != current:
        st.session_state[widget] = current

    def changed() -> None:
        st.query_params[key] = st.session_state[widget]
        st.session_state[kept] = st.session_state[widget]

    place.selectbox(label, options, key=widget, format_func=show, on_change=changed)
    return current


def choose_commit(label: str, commits: pd.DataFrame, key: str, default: str, place: Any = st) -> str:
    """A measured commit: ``commits`` has commit, short, time, subject in order. The URL holds its first 12 digits.

    The newest are listed; the start of any hash may be typed. Returns the whole hash.
    """
    known = commits["commit"].to_list()
    newest = known[: -RECENT - 1 : -1]
    asked = st.query_params.get(key) or ""
    wanted = find_commit(known, asked)
    current = wanted or default
    if asked and wanted is None and st.session_state.get(f"missed-{key}") != asked:  # said once, not at each click
        st.session_state[f"missed-{key}"] = asked
        st.session_state["choice-complaint"] = f"{_no_commit(asked)} {default[:8]} is shown instead."
    if current not in newest:
        newest.append(current)
    listed = commits[commits["commit"].isin(newest)]
    texts = {
        commit: shortened(f"{short} · {str(time)[:10]} · {subject}", 90)
        for commit, short, time, subject in zip(
            *(listed[name].to_list() for name in ("commit", "short", "time", "subject")), strict=True
        )
    }
    widget = f"choice-{key}"
    if st.session_state.get(widget) != current:
        st.session_state[widget] = current

    def changed() -> None:
        typed = st.session_state[widget] or ""
        found = find_commit(known, typed)
        if found is not None:
            st.query_params[key] = found[:12]
        else:
            st.session_state["choice-complaint"] = _no_commit(typed)

    def show(commit: str) -> str:
        return texts.get(commit) or shortened(commit, 40)

    place.selectbox(label, newest, key=widget, format_func=show, on_change=changed, accept_new_options=True)
    complaint = st.session_state.pop("choice-complaint", None)
    if complaint:
        st.toast(for_markdown(complaint), icon=":material/search_off:", duration="long")
    return current


def _no_commit(start: str) -> str:
    return f"No measured commit begins with {shortened(start, 40)!r}."


def find_commit(commits: Sequence[str], start: str) -> str | None:
    """The one commit that begins with ``start`` (at least 4 digits); None where there is none or more than one."""
    start = start.strip().lower()
    if len(start) < 4:
        return None
    found = [commit for commit in commits if commit.startswith(start)]
    return found[0] if len(found) == 1 else None


def step_buttons(commits: Sequence[str], current: str, key: str, place: Any = st) -> None:
    """Older and newer, by button or by the keys J and K."""
    at = commits.index(current)

    def go(to: int) -> None:
        st.query_params[key] = commits[to][:12]

    older, newer = place.columns(2)
    older.button("Older", key=f"{key}-older", shortcut="J", disabled=at == 0, on_click=go, args=(at - 1,), width="stretch")
    last = at == len(commits) - 1
    newer.button("Newer", key=f"{key}-newer", shortcut="K", disabled=last, on_click=go, args=(at + 1,), width="stretch")
