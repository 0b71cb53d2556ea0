"""What the CI gate and its worker processes say to each other. Imports nothing heavy: every worker pays for it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

WALL = "wall"
"""The part of a group that is the sum of the others: ``prefill@512/wall`` beside ``prefill@512/attention``."""

GAPS = "gaps"
"""The part of a group in which the device waited."""


class Status(StrEnum):
    MEASURED = "measured"
    LACKS_API = "lacks API"
    """The measured commit does not offer what the workload calls: no failure, but nothing to compare."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Request:
    """What one process is to measure. A workload is a function that takes a Request."""

    workload: str
    """``module:function``. The module belongs to the measured commit, except one below ``benchmarks``."""
    checkout: str
    """Root of the measured commit's checkout."""
    arm: str
    """"base" or "head"."""
    replicate: int
    """Number of the pair, from 0; -1 in the trial before the first pair."""
    samples: int = 3
    warmups: int = 1
    """Samples taken first and dropped."""
    model: str | None = None
    nt: tuple[int, ...] = ()
    inject: dict[str, float] = field(default_factory=dict)
    """Kernel class -> share by which a workload that can must slow it down: how the gate measures its own power."""
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What one process found: seconds per metric, one value a sample."""

    status: Status
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    detail: str = ""


Sample = Mapping[str, float]
Workload = Callable[[Request], Sample | Callable[[], Sample]]
"""Returns one sample, {"metric": seconds}; or, to prepare once and sample often, a function that returns samples."""


def to_json(message: Request | Report) -> str:
    """One line."""
    return json.dumps(dataclasses.asdict(message))


def request_from_json(text: str) -> Request:
    data = json.loads(text)
    return Request(**{**data, "nt": tuple(data["nt"])})


def report_from_json(text: str) -> Report:
    """Raises ValueError where ``text`` is no report."""
    data = json.loads(text)
    if not isinstance(data, dict) or "status" not in data:
        raise ValueError("not a report")
    metrics = {name: tuple(float(value) for value in values) for name, values in data["metrics"].items()}
    return Report(Status(data["status"]), metrics, str(data["detail"]))


def group_of(metric: str) -> tuple[str, str]:
    """``prefill@512/attention`` -> (``prefill@512``, ``attention``); a metric without a group has the group ""."""
    group, slash, part = metric.partition("/")
    return (group, part) if slash else ("", metric)
