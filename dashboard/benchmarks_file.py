"""Units and directions of asv's series, from ``results/benchmarks.json``; what it does not say stays unknown."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from .metrics import Direction

_DIRECTIONS: dict[str, Direction] = {"lower": "lower", "higher": "higher", "neither": "neither"}


@dataclass(frozen=True, slots=True)
class Description:
    unit: str = ""
    direction: Direction = "lower"
    version: str = ""
    meaning: str = ""


def read_descriptions(results: Path) -> tuple[dict[str, Description], str]:
    """Descriptions by benchmark, and what was wrong with the file ("" where nothing was)."""
    path = results / "benchmarks.json"
    if not path.is_file():
        return {}, ""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        items = [(name, entry) for name, entry in content.items() if isinstance(entry, dict)]
    except (OSError, ValueError, AttributeError) as error:
        return {}, f"benchmarks.json cannot be read ({error}); units and directions are unknown"
    return {str(name): _description(entry) for name, entry in items}, ""


def _description(entry: dict[str, object]) -> Description:
    direction = _DIRECTIONS.get(str(entry.get("direction", "lower")), "lower")
    # asv keeps the text of setup_cache and setup too: only a docstring right below the benchmark's own line is its own.
    own = re.search(
        r"def (?:track|time|mem|peakmem|timeraw)_\w+\([^\n]*\n\s*(?:r?\"\"\")(.*?)\"\"\"",
        str(entry.get("code", "")),
        re.DOTALL,
    )
    meaning = " ".join(own.group(1).split()).replace("``", "") if own else ""
    return Description(str(entry.get("unit", "")), direction, str(entry.get("version", "")), meaning)
