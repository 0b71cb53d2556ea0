"""What every refusal of the engine must be."""

from __future__ import annotations

from minfer.errors import MinferError


def one_line(error: MinferError) -> str:
    """The error's text, held to be one line and not empty."""
    line = str(error)
    assert line, "an error without a line"
    assert "\n" not in line, line
    return line
