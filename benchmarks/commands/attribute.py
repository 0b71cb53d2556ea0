"""``python -m benchmarks attribute TRACE``: where a trace's time went, whoever took it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..attribution.attribute import Answer, attribute, to_json
from ..attribution.classes import rules_with
from ..attribution.ingest import open_trace
from ..attribution.windows import choose
from ..report import html, markdown, terminal

SUMMARY = "Say where the time of a trace went: nsys, torch.profiler, ncu, llama-bench or our own capture."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", help="the file; its format is found by its content")
    window = parser.add_argument_group("window (default: the whole trace)")
    window.add_argument("--range", metavar="NAME", help="a named NVTX range or profiler annotation")
    window.add_argument("--iteration", metavar="N", type=int, help="step N of the profiler; with --range its N-th, from 0")
    window.add_argument("--span", metavar="A:B", help="ns on the trace's clock, or with us, ms, s from its first activity")
    window.add_argument("--device", metavar="D", type=int, help="one device (default: each)")
    parser.add_argument(
        "--rules", metavar="FILE", type=Path, help="kernel class rules in TOML, read before the built-in ones"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 where a check failed")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object")
    shape.add_argument("--markdown", action="store_true", help="Markdown")
    shape.add_argument("--html", action="store_true", help="one HTML file that needs nothing beside it")


def run(args: argparse.Namespace) -> int:
    """Print the answer. 0: answered; 1: --strict and a check failed; 2: no answer (one line on stderr)."""
    answer = _answer(args, args.trace)
    if args.json:
        print(json.dumps(to_json(answer), indent=1, allow_nan=False))
    elif args.markdown:
        print(markdown.render(answer))
    elif args.html:
        print(html.render(answer))
    else:
        print(terminal.render(answer))
    if args.strict and answer.failed:
        names = ", ".join(dict.fromkeys(check.name for _, check in answer.failed))
        print(f"benchmarks attribute: --strict: failed: {names}", file=sys.stderr)
        return 1
    return 0


def _answer(args: argparse.Namespace, path: str) -> Answer:
    trace = open_trace(path)
    window = choose(trace, range_name=args.range, iteration=args.iteration, span=args.span)
    return attribute(trace, path, window, device=args.device, rules=rules_with(args.rules))
