"""asv's result files as rows: one a value, keyed by its series (machine, environment, benchmark, parameters, version)."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any


class AsvFileError(ValueError):
    """A result file that cannot be read; its text says why in one line."""


@dataclass(frozen=True, slots=True)
class SeriesKey:
    machine: str
    environment: str
    benchmark: str
    parameters: str
    """The parameters' values as asv writes them, joined by ", "; empty for a benchmark without any."""
    version: str


@dataclass(frozen=True, slots=True)
class AsvValues:
    commit: str
    date_ms: int
    keys: list[SeriesKey]
    values: list[float]
    """NaN where the benchmark failed or was not run."""
    low: list[float]
    high: list[float]
    """asv's 99 % interval of the median; NaN where it has none."""
    samples: list[int]


def parse_asv(data: bytes, machine: str) -> AsvValues:
    """One file ``<commit>-<environment>.json``. Raises AsvFileError."""
    try:
        content = json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise AsvFileError(f"not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("version") != 2:
        raise AsvFileError("not an asv result of version 2")
    try:
        columns: list[str] = content["result_columns"]
        environment = str(content.get("env_name", ""))
        out = AsvValues(str(content["commit_hash"]), int(content.get("date") or 0), [], [], [], [], [])
        for benchmark, row in content["results"].items():
            _add(out, dict(zip(columns, row, strict=False)), str(benchmark), machine, environment)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AsvFileError(f"asv result with an unexpected form ({type(error).__name__}: {error})") from error
    return out


def _add(out: AsvValues, row: dict[str, Any], benchmark: str, machine: str, environment: str) -> None:
    values = row.get("result")
    if values is None:
        return
    combinations = [", ".join(map(str, chosen)) for chosen in itertools.product(*(row.get("params") or []))]
    version = str(row.get("version") or "")
    low, high = row.get("stats_ci_99_a") or [], row.get("stats_ci_99_b") or []
    counts = row.get("stats_repeat") or []
    for place, (parameters, value) in enumerate(zip(combinations, values, strict=True)):
        out.keys.append(SeriesKey(machine, environment, benchmark, parameters, version))
        out.values.append(_number(value))
        out.low.append(_number(low[place] if place < len(low) else None))
        out.high.append(_number(high[place] if place < len(high) else None))
        out.samples.append(int(counts[place] or 0) if place < len(counts) else 0)


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    number = float(value)
    return number if math.isfinite(number) else math.nan
