"""The CI gate's own figures: how often it cries wolf, how often it finds a known slowdown, and what one verdict costs.

One calibration is one JSON object on one line of ``results/<machine>/calibration/<workload>.jsonl`` (not ``.json``: asv
reads every ``.json`` file below results/). ``python -m benchmarks calibrate`` appends, the dashboard reads.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import UserFacingError
from .binomial import Rate, rate

FORMAT = "minfer-calibration"
VERSION = 1
IDENTICAL = "identical"
"""The kind of an A/A trial; any other kind is the name of the class that was slowed down."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One whole verdict of the CI gate."""

    kind: str
    slowdown: float
    """Injected into the class ``kind`` of head; 0 for an A/A trial."""
    passed: bool
    """No metric may be slower by its margin: the gate would exit 0."""
    slower: tuple[str, ...]
    """Metrics called SLOWER, by name."""
    pairs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one run of ``calibrate`` found."""

    commit: str
    time: str
    """ISO 8601, UTC."""
    machine: str
    """The machine's class."""
    workload: str
    clock: str
    """What the workload's seconds are, in words."""
    metrics: tuple[str, ...]
    """Judged together in each verdict."""
    margin: float
    alpha: float
    beta: float
    samples: int
    most_pairs: int | None
    load_average: tuple[float, ...]
    """Of the machine, after each trial: how busy it was with other things."""
    trials: tuple[Trial, ...]
    format: str = FORMAT
    version: int = VERSION

    @property
    def identical(self) -> tuple[Trial, ...]:
        """The A/A trials."""
        return tuple(trial for trial in self.trials if trial.kind == IDENTICAL)

    def injected(self, kind: str | None = None) -> tuple[Trial, ...]:
        """The trials with a slowdown, in one class or in all."""
        return tuple(trial for trial in self.trials if trial.kind != IDENTICAL and kind in (None, trial.kind))

    @property
    def false_alarms(self) -> Rate | None:
        """A/A trials that called anything SLOWER; None where there was no A/A trial."""
        trials = self.identical
        return rate(sum(bool(trial.slower) for trial in trials), len(trials)) if trials else None

    @property
    def false_undecided(self) -> Rate | None:
        """A/A trials that neither passed nor alarmed."""
        trials = self.identical
        return rate(sum(not trial.passed and not trial.slower for trial in trials), len(trials)) if trials else None

    def power(self, kind: str | None = None) -> Rate | None:
        """Slowed trials in which the slowed class itself was called SLOWER; None where there was none."""
        trials = self.injected(kind)
        found = sum(any(name.split("/")[-1] == trial.kind for name in trial.slower) for trial in trials)
        return rate(found, len(trials)) if trials else None

    def missed(self, kind: str | None = None) -> Rate | None:
        """Slowed trials that passed: the worst outcome."""
        trials = self.injected(kind)
        return rate(sum(trial.passed for trial in trials), len(trials)) if trials else None

    def cost(self, trials: Sequence[Trial]) -> tuple[float, float]:
        """Median seconds and median pairs of a verdict."""
        return median(trial.seconds for trial in trials), median(trial.pairs for trial in trials)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"), allow_nan=False)


def calibration_from_json(text: str, where: str) -> Calibration:
    """Read one line; ``where`` names it in errors. Raises UserFacingError."""
    try:
        data: dict[str, Any] = json.loads(text)
        if data["format"] != FORMAT or data["version"] != VERSION:
            raise ValueError(f"{data['format']!r} version {data['version']!r}, expected {FORMAT!r} version {VERSION}")
        trials = tuple(Trial(**{**trial, "slower": tuple(trial["slower"])}) for trial in data["trials"])
        lists = {name: tuple(data[name]) for name in ("metrics", "load_average")}
        return Calibration(**{**data, **lists, "trials": trials})
    except (ValueError, KeyError, TypeError) as error:
        raise UserFacingError(f"{where}: not a calibration ({error}); remove the line") from error


def read_calibrations(folder: Path) -> list[Calibration]:
    """All calibrations of one machine, ``results/<machine>``; oldest first. None where it has no such folder."""
    found: list[Calibration] = []
    for path in sorted((folder / "calibration").glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        found += [calibration_from_json(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    return sorted(found, key=lambda one: one.time)
