"""Regressions that a commit's ``Regression-Accepted`` trailer let pass, kept for ever after.

One acceptance is one JSON object on one line of ``results/<machine>/accepted.jsonl``. The CI gate appends, the dashboard
reads.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from .errors import UserFacingError

FORMAT = "minfer-acceptance"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What was traded away, by which commit, and why."""

    commit: str
    """The one whose message holds the trailer."""
    reason: str
    base: str
    head: str
    """The CI gate judged head against base."""
    metrics: tuple[str, ...]
    """Metrics called SLOWER, and compiled kernels that got worse, worst first."""
    changes: tuple[float | None, ...]
    """Of each metric, after / before - 1; None where before was 0."""
    format: str = FORMAT

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"), allow_nan=False)


def read_acceptances(path: Path) -> list[Acceptance]:
    """All of one file, oldest first; none where there is no file. Raises UserFacingError naming the first bad line."""
    if not path.exists():
        return []
    found: list[Acceptance] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']!r}, expected {FORMAT!r}")
            found.append(Acceptance(**{**data, "metrics": tuple(data["metrics"]), "changes": tuple(data["changes"])}))
        except (ValueError, KeyError, TypeError) as error:
            raise UserFacingError(f"{path}:{number}: not an acceptance ({error}); remove the line") from error
    return found
