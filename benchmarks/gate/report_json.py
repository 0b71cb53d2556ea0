"""The verdict as JSON: what another program reads. ``format`` and ``version`` name the schema."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ..attribution.statistics.paired import PairedSeries
from .exits import MEANING, Exit
from .verdict import Ledger, Result

FORMAT = "minfer-gate-verdict"
VERSION = 1


def render(result: Result, series: tuple[PairedSeries, ...] = ()) -> str:
    """Findings, ledgers and, so that anyone can judge again, the seconds of every pair."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "exit": int(result.exit),
        "meaning": MEANING[result.exit],
        "headline": result.headline,
        "base": dataclasses.asdict(result.base),
        "head": dataclasses.asdict(result.head),
        "culprit": result.culprit.name if result.culprit else None,
        "findings": [dataclasses.asdict(finding) for finding in result.findings],
        "ledgers": [_ledger(ledger) for ledger in result.ledgers],
        "compiled": dataclasses.asdict(result.compiled),
        "accepted_before": [dataclasses.asdict(one) for one in result.accepted_before],
        "accepted": [dataclasses.asdict(one) for one in result.accepted],
        "pairs": result.pairs,
        "quarantined": list(result.quarantined),
        "settled": result.settled,
        "undecided_allowed": result.undecided_allowed,
        "seconds": result.seconds,
        "margin": result.margin,
        "alpha": result.alpha,
        "beta": result.beta,
        "reproduce": result.reproduce,
        "next": list(result.next_steps),
        "warnings": list(result.warnings),
        "series": {one.name: {"base": list(one.base), "head": list(one.head)} for one in series},
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def render_error(code: Exit, message: str) -> str:
    """The same schema where there is no verdict."""
    data = {"format": FORMAT, "version": VERSION, "exit": int(code), "meaning": MEANING[code], "headline": message}
    return json.dumps(data, indent=1) + "\n"


def _ledger(ledger: Ledger) -> dict[str, Any]:
    booked = dataclasses.asdict(ledger)
    return {**booked, "tax_word": ledger.tax_word, "net_seconds": ledger.net_seconds, "rest_seconds": ledger.rest_seconds}
