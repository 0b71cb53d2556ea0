"""What the dashboard was started with: which results folder, and whether its readers may write into it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Settings:
    results: Path
    read_only: bool


def settings(arguments: Sequence[str] | None = None) -> Settings:
    """Read ``streamlit run dashboard/app.py -- --results DIR --read-only``; the environment gives the defaults.

    MINFER_RESULTS names the folder, MINFER_DASHBOARD_READ_ONLY (not empty, not 0) closes it for writing. ``arguments``
    are what stands after the two dashes, where Streamlit has not yet made them the script's own.
    """
    parser = argparse.ArgumentParser(prog="streamlit run dashboard/app.py --")
    parser.add_argument("--results", type=Path, default=Path(os.environ.get("MINFER_RESULTS") or CHECKOUT / "results"))
    parser.add_argument(
        "--read-only", action="store_true", default=os.environ.get("MINFER_DASHBOARD_READ_ONLY", "0") not in ("", "0")
    )
    if arguments is None:
        started_by_streamlit = bool(sys.argv) and Path(sys.argv[0]).name == "app.py"
        arguments = sys.argv[1:] if started_by_streamlit else []
    found = parser.parse_args(arguments)
    return Settings(found.results.resolve(), found.read_only)
