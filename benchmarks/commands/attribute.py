"""``python -m benchmarks attribute TRACE``: where a trace's time went, whoever took it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..attribution.answer_json import to_json
from ..attribution.attribute import Answer, attribute
from ..attribution.classes import rules_with
from ..attribution.compare import compare
from ..attribution.compare import to_json as comparisons_to_json
from ..attribution.errors import UserFacingError
from ..attribution.ingest import open_trace
from ..attribution.windows import choose
from ..attribution.work import label
from ..engine import ModelShapes, model_shapes
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
        "--by-range", metavar="REGEX", nargs="?", const="", help="also by the innermost range around the launch (of these)"
    )
    parser.add_argument(
        "--rules", metavar="FILE", type=Path, help="kernel class rules in TOML, read before the built-in ones"
    )
    work = parser.add_argument_group("work (gives GMAC and us per GMAC)")
    work.add_argument("--gguf", metavar="FILE", type=Path, help="the model whose tensor shapes are the work")
    work.add_argument("--tokens", metavar="N", type=int, help="prompt tokens of one prefill in the window")
    work.add_argument("--ubatch", metavar="N", type=int, help="tokens a pass of llama.cpp (default: found by trying)")
    parser.add_argument("--against", metavar="TRACE2", help="another trace to compare with, per unit of work")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a check failed")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object")
    shape.add_argument("--markdown", action="store_true", help="Markdown")
    shape.add_argument("--html", action="store_true", help="one HTML file that needs nothing beside it")


def run(args: argparse.Namespace) -> int:
    """Print the answer. 0: answered; 1: --strict and a check failed; 2: no answer (one line on stderr)."""
    shapes = _shapes(args)
    answers = [_answer(args, path, shapes) for path in (args.trace, args.against) if path is not None]
    comparisons = compare(*answers) if args.against is not None else ()
    if args.json:
        out = to_json(answers[0])
        if args.against is not None:
            out["against"] = to_json(answers[1])
            out["comparison"] = comparisons_to_json(comparisons)
        print(json.dumps(out, indent=1, allow_nan=False))
    else:
        renderer = markdown if args.markdown else html if args.html else terminal
        print(renderer.render(answers, comparisons))
    failed = [check for answer in answers for _, check in answer.failed]
    failed += [check for item in comparisons for check in item.checks if check.passed is False]
    if args.strict and failed:
        names = ", ".join(dict.fromkeys(check.name for check in failed))
        print(f"benchmarks attribute: --strict: failed: {names}", file=sys.stderr)
        return 1
    return 0


def _shapes(args: argparse.Namespace) -> ModelShapes | None:
    if (args.gguf is None) != (args.tokens is None):
        raise UserFacingError("--gguf and --tokens belong together: shapes alone are no work; give both")
    if args.gguf is None:
        return None
    if args.tokens < 1:
        raise UserFacingError(f"--tokens {args.tokens}: expected at least 1")
    return model_shapes(args.gguf)


def _answer(args: argparse.Namespace, path: str, shapes: ModelShapes | None) -> Answer:
    trace = open_trace(path, with_ranges=(args.range, args.iteration, args.by_range) != (None, None, None))
    window = choose(trace, range_name=args.range, iteration=args.iteration, span=args.span, where=path)
    work = None
    if shapes is not None and args.by_range is not None:
        raise UserFacingError("--by-range and --gguf both name the work of a launch; give one")
    if shapes is not None:
        work = label(
            trace,
            shapes.tensors,
            args.tokens,
            attention=shapes.attention,
            experts_used=shapes.experts_used,
            ubatch=args.ubatch,
            device=args.device,
        )
    rules = rules_with(args.rules)
    return attribute(
        trace, path, window, device=args.device, rules=rules, work=work, tokens=args.tokens, by_range=args.by_range
    )
