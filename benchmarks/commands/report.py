"""``python -m benchmarks report``: the dashboard's main views as one HTML file that needs nothing beside it."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from ..attribution.errors import UserFacingError

SUMMARY = "write the dashboard's main views as one HTML file: newest commit, history, decomposition, queue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="folder of stored results")
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="default: report.html")
    parser.add_argument("--machine", metavar="NAME", help="as in results/<machine> (default: one with a GPU)")
    parser.add_argument("--nt", type=int, metavar="N", help="prompt tokens (default: the longest measured)")


def run(args: argparse.Namespace) -> int:
    """Write the file and say where it is."""
    try:
        # Only this command needs the dashboard and its libraries, and only from a checkout.
        report = importlib.import_module("dashboard.report")
    except ModuleNotFoundError as error:
        raise UserFacingError(f"the report needs {error.name}; run it in the checkout, after 'make setup'") from error
    view = report.write_report(args.results.resolve(), args.out.resolve(), args.machine, args.nt)
    print(f"{args.out}: {view.machine}, nt {view.nt}")
    return 0
