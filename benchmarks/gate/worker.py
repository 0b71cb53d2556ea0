"""One process of one arm: reads a Request on stdin, measures, writes a Report as one line on stdout."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from .protocol import Report, Request, Sample, Status, Workload, request_from_json, to_json

ENGINE_PACKAGE = "minfer"


class _LacksApiError(Exception):
    """The measured commit does not offer what the workload needs."""


def main() -> int:
    """Exit code 0 where a Report was written; anything else is a crash, and stderr says which."""
    # What the workload prints must not end up in the report: stdout becomes stderr, the report keeps the real one.
    channel = os.dup(1)
    os.dup2(2, 1)
    request = request_from_json(sys.stdin.read())
    try:
        report = measure(request)
    except _LacksApiError as reason:
        report = Report(Status.LACKS_API, detail=str(reason))
    except NotImplementedError as reason:
        report = Report(Status.LACKS_API, detail=str(reason) or "NotImplementedError")
    sys.stdout.flush()
    with os.fdopen(channel, "w", encoding="utf-8") as out:
        out.write(to_json(report) + "\n")
    return 0


def measure(request: Request) -> Report:
    """Warm-ups are taken and dropped; ``samples`` samples are kept, each with the same metrics."""
    workload = _find(request)
    first = workload(request)
    sample: Callable[[], Sample] = first if callable(first) else lambda: _again(workload, request)
    taken = [] if callable(first) else [first]
    while len(taken) < request.warmups + request.samples:
        taken.append(sample())
    kept = taken[request.warmups :]
    _check_origin(request)
    names = list(kept[0])
    for values in kept:
        if set(values) != set(names):
            odd = sorted(set(values) ^ set(names))[0]
            return Report(Status.FAILED, detail=f"metric {odd!r} is in some samples and not in others; mend the workload")
    return Report(Status.MEASURED, {name: tuple(float(values[name]) for values in kept) for name in names})


def _again(workload: Workload, request: Request) -> Sample:
    values = workload(request)
    if callable(values):
        raise TypeError(f"workload {request.workload} returned numbers first and a function later")
    return values


def _find(request: Request) -> Workload:
    module_name, _, function_name = request.workload.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        root = module_name.split(".")[0]
        if error.name and error.name.split(".")[0] in (root, ENGINE_PACKAGE):
            raise _LacksApiError(f"no module {error.name}") from error
        raise
    if not hasattr(module, function_name):
        raise _LacksApiError(f"module {module_name} has no {function_name}")
    workload: Workload = getattr(module, function_name)
    return workload


def _check_origin(request: Request) -> None:
    """A figure of the wrong checkout is worse than none: what was measured must have come from the measured commit."""
    root = Path(request.checkout).resolve()
    for name in {ENGINE_PACKAGE, request.workload.split(":")[0].split(".")[0]} - {"benchmarks"}:
        origin = getattr(sys.modules.get(name), "__file__", None)
        if origin and not Path(origin).resolve().is_relative_to(root):
            raise RuntimeError(f"{name} was imported from {origin}, not from the measured checkout {root}")
