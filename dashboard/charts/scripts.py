"""Drawings of our own: the scripts, the markup and the style sheet that each is made of."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["plot", "many", "table"]
_FILES: dict[str, tuple[str, ...]] = {
    "plot": ("draw.js", "scales.js", "marks.js", "plot.js"),
    "many": ("draw.js", "many.js"),
    "table": ("draw.js", "marks.js", "table.js"),
}
_HERE = Path(__file__).parent


@cache
def markup(kind: Kind) -> str:
    """What a drawing finds on its page: a bar of buttons, the place to draw in, the tip."""
    image = f'<button class="{kind}-image" type="button">Save image</button>'
    table, place = f'<button class="{kind}-table" type="button">CSV</button>', f'<div class="{kind}-drawing"></div>'
    if kind == "table":  # its own headings stand on top
        return f'<div class="{kind}">{place}<div class="{kind}-bar">{table}</div></div>'
    tip = f'<div class="{kind}-tip" role="status" hidden></div>'
    return f'<div class="{kind}"><div class="{kind}-bar">{image}{table}</div>{place}{tip}</div>'


@cache
def style_sheet(kind: Kind) -> str:
    return (_HERE / f"{kind}.css").read_text(encoding="utf-8")


@cache
def script(kind: Kind) -> str:
    """The scripts of a drawing, one after another; its function is called like the kind."""
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in _FILES[kind])
