"""Runs one process of one arm and pairs two of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import IO

from ..attribution.record import Conditions
from ..capture.conditions import Probe, clock_drift, quarantine_reason
from .exits import BenchmarkFailedError
from .protocol import Report, Request, Status, report_from_json, to_json

BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
STDERR_TAIL = 400
ARMS = ("base", "head")


@dataclass(frozen=True, slots=True)
class ArmRun:
    """One process: its report, how long it took in all, and the machine meanwhile."""

    report: Report
    seconds: float
    conditions: tuple[Conditions, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """One replicate: seconds per metric in each arm (median over the process's samples)."""

    base: dict[str, float]
    head: dict[str, float]
    first: str
    """The arm that ran first."""
    seconds: float
    quarantined: str = ""
    """Why this pair is not used; empty where it is."""
    started: str = ""
    load_average: float | None = None
    clock_mhz: dict[str, float] = field(default_factory=dict)


def run_arm(request: Request, probe: Probe, timeout: float) -> ArmRun:
    """Start a fresh process for ``request``. Raises BenchmarkFailedError with the end of its stderr where it fails."""
    path = os.pathsep.join([request.checkout, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = dict(os.environ, PYTHONPATH=path)
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors, probe.watching() as watch:
        process = subprocess.Popen(
            [sys.executable, "-P", str(BOOTSTRAP)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            cwd=request.checkout, env=environment, start_new_session=True,
        )  # fmt: skip
        watch.own.add(process.pid)
        try:
            output, _ = process.communicate(to_json(request).encode(), timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise BenchmarkFailedError(
                f"{request.arm}: no answer within {timeout:.0f} s ({request.workload}); {_tail(errors)}; "
                "raise --timeout or mend the hang"
            ) from error
        finally:
            _end(process)
        if process.returncode != 0:
            how = f"exit code {process.returncode}" if process.returncode > 0 else _signal_name(-process.returncode)
            raise BenchmarkFailedError(f"{request.arm}: {request.workload} failed with {how}; {_tail(errors)}")
        try:
            report = report_from_json(output.decode(errors="replace"))
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkFailedError(f"{request.arm}: {request.workload} gave no report; {_tail(errors)}") from error
    if report.status is Status.FAILED:
        raise BenchmarkFailedError(f"{request.arm}: {request.workload}: {report.detail}")
    return ArmRun(report, time.monotonic() - started, watch.conditions)


def run_pair(request: Request, checkouts: Mapping[str, Path], first: str, probe: Probe, timeout: float) -> Pair:
    """Both arms, ``first`` first, each in a fresh process. Injected slowdowns go into head alone."""
    runs: dict[str, ArmRun] = {}
    for arm in (first, *(arm for arm in ARMS if arm != first)):
        inject = request.inject if arm == "head" else {}
        runs[arm] = run_arm(replace(request, arm=arm, checkout=str(checkouts[arm]), inject=inject), probe, timeout)
    base, head = runs["base"], runs["head"]
    reasons = [f"{arm} {reason}" for arm in ARMS if (reason := quarantine_reason(runs[arm].conditions))]
    drift = clock_drift(base.conditions, head.conditions, probe.limits)
    last = head.conditions[-1]
    return Pair(
        base={name: median(values) for name, values in base.report.metrics.items()},
        head={name: median(values) for name, values in head.report.metrics.items()},
        first=first,
        seconds=base.seconds + head.seconds,
        quarantined="; ".join([*reasons, drift] if drift else reasons),
        started=base.conditions[0].time,
        load_average=last.load_average,
        clock_mhz=last.clock_mhz,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the worker's own session, so that nothing runs on into the next sample."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(errors: IO[bytes]) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - 4000))
    text = " ".join(errors.read().decode(errors="replace").split())
    return f"its last words: {text[-STDERR_TAIL:]}" if text else "it said nothing on stderr"


def _signal_name(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"
