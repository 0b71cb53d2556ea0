"""Text that others wrote (commit subjects, file names, kernel symbols) made harmless before it is shown.

Streamlit reads Markdown in nearly every label: it would let a commit subject fetch an image, forge a link or hide text.
Charts know a line break and bold only, and set all text as text.
"""

from __future__ import annotations

import html
import re
import unicodedata

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&])")


def _visible(text: str) -> str:
    """One line without control, direction-changing or other invisible characters."""
    if text.isprintable():
        return text
    return "".join(
        " " if c in "\n\r\t" else c for c in text if c in "\n\r\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs")
    )


def shortened(text: str, length: int) -> str:
    text = _visible(text)
    return text if len(text) <= length else text[: length - 1] + "…"


def for_markdown(text: str, length: int = 200) -> str:
    """Text that Markdown, its directives and its mathematics leave as it is."""
    return _MARKDOWN.sub(r"\\\1", shortened(text, length))


def for_hover(text: str, length: int = 120) -> str:
    """Text that the charts' little markup (<b>, <br>) and their %{...} templates leave as it is."""
    return html.escape(shortened(text, length), quote=False).replace("%{", "%\u200b{")


def for_html(text: str, length: int = 400) -> str:
    return html.escape(shortened(text, length))
