"""What asv's setup_cache runs: one window for the commit under test, in the commit's own process."""

from __future__ import annotations

import os

from .capture.machine import machine_class, uses_gpu
from .engine import CommitTooOldError, EngineOptions, import_minfer
from .models import model_path
from .progress import say
from .series import keep_record, measured_nts
from .window import Plan, take_window


def measure_commit() -> dict[str, str]:
    """Take the window, keep its record, and hand it to the benchmarks as JSON."""
    try:
        import_minfer()
    except CommitTooOldError as error:
        say(f"skipped: {error}")
        return {"skipped": str(error)}
    backend = os.environ.get("MINFER_BACKEND", "auto")
    plan = Plan(
        model=model_path(),
        nts=measured_nts(uses_gpu(backend)),
        machine=os.environ.get("MINFER_MACHINE") or machine_class(),
        samples=int(os.environ.get("MINFER_SAMPLES", "10")),
        seconds_per_nt=float(os.environ.get("MINFER_SECONDS", "40")),
        engine=EngineOptions(backend),
    )
    say(f"commit {os.environ.get('ASV_COMMIT', 'HEAD')[:8]}")
    record = take_window(plan, say)
    keep_record(record)
    return {"record": record.to_json()}

