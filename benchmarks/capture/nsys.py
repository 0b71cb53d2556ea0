"""Where CUPTI is missing in this process: Nsight Systems around a child process that runs the same passes.

``MINFER_NSYS`` names the program; otherwise ``nsys`` on the PATH is taken. It writes its report, exports it to SQLite, and
the importer of such files reads it: kernels, copies, calls and the ranges that the child made (nsys_child.py).
https://docs.nvidia.com/nsight-systems/UserGuide/index.html
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..attribution.errors import UserFacingError
from ..attribution.events import OperationLabel, Trace
from ..attribution.ingest import nsys_sqlite
from ..attribution.ranges import label_by_ranges
from ..programs import find_program
from .nsys_child import LABELLED, OPERATION, PASS

INSTRUMENT_VERSION = 1
NOTE = "nsys around a child process: its passes are not those that were timed, and its clock began with its own warm-up"
TIMEOUT_S = 900
_IMPORTER = "QdstrmImporter"

# The measured package first, as the parent finds it; then this suite, whatever that package's checkout holds of it.
_CHILD = (
    "import json, sys; request = json.load(open(sys.argv[1])); sys.path[:] = request['path']; import minfer; "
    "sys.path.insert(0, request['suite']); from benchmarks.capture.nsys_child import main; main(request)"
)
_Columns = TypeVar("_Columns")


class NsysError(UserFacingError):
    """nsys or the child under it failed. One line: its own last words, and what to run by hand."""


def nsys_binary() -> Path | None:
    """The program to run, if there is one. Raises NsysError where the user's own is not there."""
    return find_program("MINFER_NSYS", "nsys", NsysError)


def check(binary: Path) -> None:
    """Raises NsysError where this nsys makes no report, or exports none, as the one inside Nsight Compute's folder."""
    with tempfile.TemporaryDirectory(prefix="minfer-nsys-") as folder:
        _exported(binary, [sys.executable, "-c", "pass"], Path(folder))


def profile(binary: Path, request: Mapping[str, Any]) -> Trace:
    """What nsys saw of a child that runs ``request`` (see nsys_child). Raises NsysError, TraceError."""
    with tempfile.TemporaryDirectory(prefix="minfer-nsys-") as folder:
        ask = Path(folder) / "request.json"
        path = [str(Path(entry).absolute()) for entry in sys.path]
        ask.write_text(json.dumps({**request, "path": path, "suite": str(Path(__file__).resolve().parents[2])}), "utf-8")
        return nsys_sqlite.read(_exported(binary, [sys.executable, "-c", _CHILD, str(ask)], Path(folder)))


def _exported(binary: Path, program: list[str], folder: Path) -> Path:
    """The SQLite file of a report of ``program``."""
    report, exported = folder / "trace.nsys-rep", folder / "trace.sqlite"
    steps = (
        (["profile", "--trace=cuda,nvtx", "--cuda-graph-trace=node", "--sample=none", "--cpuctxsw=none"], program, report),
        (["export", "--type=sqlite"], [str(report)], exported),
    )
    for options, source, made in steps:
        said = _run([str(binary), *options], ["--force-overwrite=true", "-o", str(made), *source])
        if not made.is_file():
            raise NsysError(f"nsys {options[0]}: it ended well and made no file ({_why_no_report(binary) or said})")
    return exported


def _why_no_report(binary: Path) -> str:
    """nsys has another program make its report; where that does not start, nsys calls it an unknown error and ends well."""
    for importer in sorted(binary.resolve().parent.parent.glob(f"*/{_IMPORTER}")):
        try:
            asked = [str(importer), "--version"]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{importer} does not start: {error}"
        if done.returncode == 0:
            return ""
        # "error while loading shared libraries: libdw.so.1: cannot open shared object file"
        words = (done.stderr.strip() or "no message").splitlines()[-1].removeprefix(f"{importer}: ")
        return f"{importer} does not start: {words}; install what it lacks"
    return f"no {_IMPORTER} beside it; install Nsight Systems whole, of which other tools bring parts"


def _run(command: list[str], files: list[str]) -> str:
    """Its last words. ``files`` are temporary: nobody can run those by hand."""
    by_hand = f"run it by hand: {' '.join(command)} ..."
    try:
        done = subprocess.run([*command, *files], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NsysError(f"nsys {command[1]}: {error}; {by_hand}") from error
    words = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()] or ["no message"]
    if done.returncode != 0:
        raise NsysError(f"nsys {command[1]}: exit code {done.returncode}: {words[-1]}; {by_hand}")
    return words[-1]


def passes(trace: Trace) -> list[Trace]:
    """The passes that were kept, each as a trace of its own window. Raises NsysError where there is none."""
    found = [cut(trace, window) for name, window in sorted(_windows(trace).items(), key=_number) if name.startswith(PASS)]
    if not found:
        raise NsysError(f"nsys: no range {PASS!r} in its report, expected one a pass; update nsys, or trace without it")
    return found


def labelled(trace: Trace, operations: tuple[OperationLabel, ...]) -> Trace:
    """The pass whose operations were ranges, its launches with the operation of the call that made them."""
    window = _windows(trace).get(LABELLED)
    if window is None:
        raise NsysError(f"nsys: no range {LABELLED!r} in its report; update nsys, or trace without it")
    by_range = label_by_ranges(cut(trace, window), rf"^{OPERATION} (\d+)$")
    launches = by_range.launches
    assert launches is not None and launches.operation is not None
    numbers = np.array([*(int(label.name) for label in by_range.operations), -1], np.int32)
    last = int(numbers.max())
    if last >= len(operations):
        raise NsysError(f"nsys: range {OPERATION} {last}, expected {len(operations)} operations of this pass")
    # An index of -1 meets the last number, which is -1 too.
    return replace(by_range, launches=replace(launches, operation=numbers[launches.operation]), operations=operations)


def cut(trace: Trace, window: tuple[int, int]) -> Trace:
    """What of a trace lies in a window: the device was synchronised at both its ends, so nothing reaches over them."""
    return replace(
        trace,
        launches=_inside(trace.launches, window),
        copies=_inside(trace.copies, window),
        api_calls=_inside(trace.api_calls, window),
        ranges=_inside(trace.ranges, window),
        window_ns=window,
    )


def _inside(columns: _Columns, window: tuple[int, int]) -> _Columns:
    if columns is None:
        return columns
    table: Any = columns
    mask: NDArray[np.bool_] = (table.start >= window[0]) & (table.end <= window[1])
    kept = {one.name: getattr(table, one.name) for one in fields(table)}
    return type(columns)(**{name: None if column is None else column[mask] for name, column in kept.items()})


def _windows(trace: Trace) -> dict[str, tuple[int, int]]:
    if trace.ranges is None:
        return {}
    named = zip(trace.ranges.name, trace.ranges.start, trace.ranges.end, strict=True)
    found = {trace.names[name]: (int(start), int(end)) for name, start, end in named}
    return {name: window for name, window in found.items() if name == LABELLED or name.startswith(PASS)}


def _number(item: tuple[str, tuple[int, int]]) -> int:
    found = re.search(r"\d+$", item[0])
    return int(found[0]) if found else -1
