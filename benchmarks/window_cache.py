"""What asv's setup_cache runs: one window for the commit under test, in the commit's own process."""

from __future__ import annotations

import os

from .attribution.errors import UserFacingError
from .attribution.record import Record
from .capture.machine import machine_class, uses_gpu
from .engine import CommitTooOldError, EngineOptions, import_minfer
from .models import model_path
from .progress import say
from .series import measured_nts
from .series_values import keep_record, kept_record
from .window import Plan, take_window


def gates_beside() -> list[dict[str, str]]:
    """MINFER_BESIDE="mmq=1,bt=1;graphs=0" as sets of gates to measure in the same window. Raises UserFacingError."""
    found = []
    for text in filter(None, os.environ.get("MINFER_BESIDE", "").split(";")):
        pairs = [part.partition("=") for part in text.split(",")]
        if any(not name.strip() or not equals for name, equals, _ in pairs):
            raise UserFacingError(f"MINFER_BESIDE: {text!r} is no list of gates; expected the form mmq=1,bt=1")
        found.append({name.strip(): value.strip() for name, _, value in pairs})
    return found


def measure_commit() -> Record | None:
    """Take the window and keep its record; None, said as progress, for a commit too old to be measured."""
    if os.environ.get("MINFER_FROM_RECORDS"):
        return kept_record(os.environ.get("ASV_COMMIT", ""))
    try:
        import_minfer()
    except CommitTooOldError as error:
        say(f"skipped: {error}")
        return None
    backend = os.environ.get("MINFER_BACKEND", "auto")
    nts = measured_nts(uses_gpu(backend))
    # As many tokens as the longest prompt: the peer's cache is as long, and memory is compared.
    context = max(nts)
    plan = Plan(
        model=model_path(),
        nts=nts,
        machine=os.environ.get("MINFER_MACHINE") or machine_class(),
        samples=int(os.environ.get("MINFER_SAMPLES", "10")),
        seconds_per_nt=float(os.environ.get("MINFER_SECONDS", "40")),
        engine=EngineOptions(backend, context=context),
        beside=tuple(EngineOptions(backend, context=context, gates=gates) for gates in gates_beside()),
    )
    say(f"commit {os.environ.get('ASV_COMMIT', 'HEAD')[:8]}")
    record = take_window(plan, say)
    keep_record(record)
    return record

