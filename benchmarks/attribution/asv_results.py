"""asv 0.6.6's stored results as series: one value a commit, in the order of the history.

Reads ``results/<machine>/<commit>-<environment>.json`` (version 2: rows named by ``result_columns``) and the units and
directions in ``results/benchmarks.json``.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .errors import UserFacingError

Direction = Literal["lower", "higher", "neither"]
_NOT_RESULTS = ("machine.json", "benchmarks.json")


class AsvResultError(UserFacingError):
    """A result file that cannot be read."""


@dataclass(frozen=True, slots=True)
class AsvPoint:
    commit: str
    date_ms: int
    """The commit's date as asv stored it, ms since 1970."""
    value: float
    """The median that asv stores."""
    samples: tuple[float, ...]
    """Empty where asv kept none."""


@dataclass(frozen=True, slots=True)
class AsvSeries:
    machine: str
    environment: str
    benchmark: str
    parameters: tuple[str, ...]
    """As asv writes them: strings in quotes."""
    version: str
    unit: str
    direction: Direction
    points: tuple[AsvPoint, ...]

    @property
    def name(self) -> str:
        """``benchmark(parameter, ...)``."""
        return f"{self.benchmark}({', '.join(self.parameters)})" if self.parameters else self.benchmark


def read_asv_results(results: Path, order: Sequence[str] = ()) -> tuple[AsvSeries, ...]:
    """Every series below a results folder, failed and missing values left out. Raises AsvResultError.

    ``order`` names commits from oldest to newest; one that it lacks (rebased away) is placed by its date.
    """
    described = _descriptions(results)
    found: dict[tuple[str, str, str, tuple[str, ...], str], list[AsvPoint]] = {}
    for path in sorted(results.glob("*/*.json")):
        if path.name in _NOT_RESULTS:
            continue
        _read_file(path, found)
    place = commit_places(order, {point.commit: point.date_ms for points in found.values() for point in points})
    series = []
    for (machine, environment, benchmark, parameters, version), points in sorted(found.items()):
        unit, direction = described.get(benchmark, ("", "lower"))
        ordered = tuple(sorted(points, key=lambda point: place[point.commit]))
        series.append(AsvSeries(machine, environment, benchmark, parameters, version, unit, direction, ordered))
    return tuple(series)


def commit_places(order: Sequence[str], dates_ms: dict[str, int]) -> dict[str, tuple[float, int, str]]:
    """A sort key for every commit of ``dates_ms``: its place in ``order``; else after the last known one not younger."""
    position = {commit: place for place, commit in enumerate(order)}
    known = sorted((position[commit], date) for commit, date in dates_ms.items() if commit in position)
    # Dates in a history can run backwards: hold each place against the newest date up to it.
    newest = list(itertools.accumulate((date for _, date in known), max))
    places: dict[str, tuple[float, int, str]] = {}
    for commit, date in dates_ms.items():
        if commit in position:
            places[commit] = (float(position[commit]), date, commit)
        else:
            after = bisect.bisect_right(newest, date)
            places[commit] = (known[after - 1][0] + 0.5 if after else -1.0, date, commit)
    return places


def _descriptions(results: Path) -> dict[str, tuple[str, Direction]]:
    path = results / "benchmarks.json"
    if not path.exists():
        return {}
    content = _load(path)
    found: dict[str, tuple[str, Direction]] = {}
    for name, entry in content.items():
        if isinstance(entry, dict):
            direction = entry.get("direction", "lower")
            known: Direction = direction if direction in ("lower", "higher", "neither") else "lower"
            found[name] = (str(entry.get("unit") or ""), known)
    return found


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise AsvResultError(f"{path}: not JSON ({error}); remove it or measure again") from error
    except OSError as error:
        raise AsvResultError(f"{path}: cannot be read ({error.strerror})") from error
    if not isinstance(content, dict):
        raise AsvResultError(f"{path}: expected an object, seen {type(content).__name__}; remove it or measure again")
    return content


def _read_file(path: Path, found: dict[tuple[str, str, str, tuple[str, ...], str], list[AsvPoint]]) -> None:
    content = _load(path)
    if content.get("version") != 2:
        raise AsvResultError(
            f"{path}: result version {content.get('version')!r}, expected 2 (asv 0.6.6); run asv update or remove it"
        )
    try:
        columns: list[str] = content["result_columns"]
        commit, date = str(content["commit_hash"]), int(content["date"])
        environment = str(content.get("env_name", ""))
        for benchmark, cells in content["results"].items():
            row = dict(zip(columns, cells, strict=False))
            values, samples = row.get("result"), row.get("samples") or []
            if values is None:
                continue
            combinations = list(itertools.product(*(row.get("params") or [])))
            for number, (chosen, value) in enumerate(zip(combinations, values, strict=True)):
                if value is None or not math.isfinite(float(value)):
                    continue
                kept = tuple(map(float, samples[number] or ())) if number < len(samples) else ()
                key = (path.parent.name, environment, benchmark, tuple(map(str, chosen)), str(row.get("version") or ""))
                found.setdefault(key, []).append(AsvPoint(commit, date, float(value), kept))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AsvResultError(
            f"{path}: not the form of an asv result ({type(error).__name__}: {error}); remove it or measure again"
        ) from error
