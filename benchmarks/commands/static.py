"""``python -m benchmarks static [--base REV]``: what the compiler made of every kernel; any rise is a verdict."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..static.collect import TARGETS, collect, exported
from ..static.facts import Change, KernelFacts, changes, to_json

SUMMARY = "Registers, spills, occupancy and instructions of every kernel, without a GPU; compared with another commit."
REGRESSED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="REV", help="compare with this commit: any metric that got worse exits 1")
    parser.add_argument("--target", choices=TARGETS, action="append", help="one target (default: all)")
    parser.add_argument("--kernel", metavar="TEXT", default="", help="only kernels whose name holds this")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print facts, or with --base what changed. 0: nothing worse; 1: something is; 2: not compiled (one line on stderr)."""
    checkout = Path(__file__).resolve().parents[2]
    targets = tuple(dict.fromkeys(args.target or TARGETS))
    head = [facts for facts in collect(checkout, targets) if args.kernel in facts.kernel]
    if args.base is None:
        print(json.dumps({"kernels": [to_json(facts) for facts in head]}, indent=1) if args.json else _table(head))
        return 0
    with exported(checkout, args.base) as folder:
        base = [facts for facts in collect(folder, targets) if args.kernel in facts.kernel]
    found = changes(base, head)
    worse = [change for change in found if change.worse]
    if args.json:
        rows = [{name: getattr(change, name) for name in Change.__slots__} for change in found]
        print(json.dumps({"base": args.base, "regressed": bool(worse), "changes": rows}, indent=1))
    else:
        print(_comparison(found, base, head, args.base))
    if worse:
        print(f"benchmarks static: {len(worse)} metrics got worse since {args.base}", file=sys.stderr)
    return REGRESSED if worse else 0


def _table(kernels: list[KernelFacts]) -> str:
    titles = f"{'regs':>4} {'spill':>5} {'stack':>5} {'shared':>6} {'warps':>5} {'matrix':>6} {'loop/mma':>8} {'code':>6}"
    lines = [f"{'kernel':34} {'target':7} {titles}"]
    for one in kernels:
        loop = "-" if one.loop_per_matrix is None else f"{one.loop_per_matrix:.2f}"
        lines.append(
            f"{one.kernel:34} {one.target:7} {one.registers:4} {one.spill_bytes:5} {one.stack_bytes:5} {one.shared_bytes:6} "
            f"{one.warps_resident:5} {one.matrix_instructions:6} {loop:>8} {one.code_bytes:6}"
        )
    return "\n".join(lines)


def _comparison(found: list[Change], base: list[KernelFacts], head: list[KernelFacts], revision: str) -> str:
    lines = []
    for change in found:
        verdict = "WORSE " if change.worse else "better"
        where = f"{change.kernel:34} {change.target:7} {change.metric:16}"
        lines.append(f"{verdict} {where} {change.before:g} -> {change.after:g}")
    old, new = {facts.kernel for facts in base}, {facts.kernel for facts in head}
    lines += [f"new    {name}" for name in sorted(new - old)] + [f"gone   {name}" for name in sorted(old - new)]
    same = len({facts.key for facts in head} & {facts.key for facts in base}) - len({(c.kernel, c.target) for c in found})
    return "\n".join([*lines, f"{same} kernel builds are as they were at {revision}"])
