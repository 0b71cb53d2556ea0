"""``python -m benchmarks static [--base REV] [--store REV ...]``: what the compiler made of every kernel.

Against another commit any rise is a verdict; what is stored stands beside the measured cost on the dashboard.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..attribution.git import run_git
from ..attribution.record_files import read_records
from ..static.collect import TARGETS, NoKernelsError, collect, exported
from ..static.facts import Change, KernelFacts, changes, to_json
from ..static.store import StaticFigures, compiler_version, write_static

SUMMARY = "Registers, spills, occupancy and instructions of every kernel, without a GPU; compared with another commit."
REGRESSED = 1
MEASURED = "measured"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="REV", help="compare with this commit: any metric that got worse exits 1")
    parser.add_argument("--target", choices=TARGETS, action="append", help="one target (default: all)")
    parser.add_argument("--kernel", metavar="TEXT", default="", help="only kernels whose name holds this")
    parser.add_argument(
        "--store",
        metavar="REV",
        nargs="+",
        help=f"keep the figures of these commits below results/static/; {MEASURED!r}: of all with records of a GPU",
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="the results folder (default: results)")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print facts, or with --base what changed. 0: nothing worse; 1: something is; 2: not compiled (one line on stderr)."""
    checkout = Path(__file__).resolve().parents[2]
    targets = tuple(dict.fromkeys(args.target or TARGETS))
    if args.store:
        return _store(checkout, args.results, args.store, targets)
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


def _store(checkout: Path, results: Path, revisions: list[str], targets: tuple[str, ...]) -> int:
    """Compile each commit's kernels and keep the figures; a commit without kernels is named and skipped."""
    commits: dict[str, None] = {}
    for revision in revisions:
        if revision == MEASURED:
            commits |= {path.stem: None for path in sorted(results.glob("*/records/*.jsonl")) if _on_a_gpu(path)}
        else:
            commits[run_git(checkout, "rev-parse", "--verify", f"{revision}^{{commit}}")] = None
    kept = 0
    for commit in commits:
        try:
            with exported(checkout, commit) as folder:
                figures = StaticFigures(commit, compiler_version(), tuple(collect(folder, targets)))
        except NoKernelsError as error:
            print(f"{commit[:10]}: skipped: {error}", file=sys.stderr)
            continue
        print(f"{commit[:10]}: {len(figures.kernels)} kernels -> {write_static(results, figures)}")
        kept += 1
    return 0 if kept else 2


def _on_a_gpu(path: Path) -> bool:
    return any(record.machine.gpu for record in read_records(path))


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
