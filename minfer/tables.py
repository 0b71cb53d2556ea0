"""Plain text for terminals: columns that line up, sizes that read well."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Titles and rows, each column as wide as its widest cell, indented by two blanks."""
    lines = (titles, *rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def binary_size(nbytes: int) -> str:
    """As 3.56 GiB, 1.20 MiB, 12.00 KiB or 8 B."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.2f} {unit}"
    return f"{nbytes} B"
