"""``python -m benchmarks calibrate``: the CI gate's own error rates on this machine."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

from ..attribution.errors import UserFacingError
from ..attribution.statistics.calibration import Calibration
from ..gate.calibrate import calibrate
from ..gate.compare import DETERMINISTIC
from ..gate.exits import Exit
from ..gate.files import write_whole
from ..gate.options import CHECKOUT, add_deciding, add_measuring, machine_name, settings_from, terminated_as_interrupt
from ..gate.repository import Repository

SUMMARY = "measure the CI gate itself: false alarms on identical commits, power on a known slowdown"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--identical", type=_count, default=300, metavar="N", help="verdicts on identical commits (default: 300)")
    add("--slowed", type=_count, default=100, metavar="N", help="verdicts with a slowdown in one class (default: 100)")
    add("--slowdown", type=float, default=0.03, metavar="SHARE", help="the slowdown that is injected (default: 0.03)")
    add("--class", action="append", default=[], dest="classes", metavar="NAME", help="slow this one (default: each in turn)")
    add("--results", type=Path, default=CHECKOUT / "results", metavar="FOLDER", help="where results are kept")
    add("--revision", default="HEAD", metavar="REV", help="the commit that both arms are (default: HEAD)")
    add("--resume", action="store_true", help="go on from the trials of an interrupted run with the same settings")
    add_deciding(parser)
    add_measuring(parser, budget=300)
    parser.set_defaults(workload=DETERMINISTIC, samples=1, warmups=0, max_pairs=60)


def run(args: argparse.Namespace) -> int:
    """Appends one line to ``results/<machine>/calibration/<workload>.jsonl``."""
    if args.identical + args.slowed == 0 or not 0 < args.slowdown < 10:
        raise UserFacingError("calibrate: give --identical or --slowed above 0, and a --slowdown such as 0.03")
    settings = settings_from(args)
    repository = Repository(args.repository)
    revision = repository.revision(args.revision)
    machine = machine_name()
    question = {**settings.question(revision.commit, revision.commit), "classes": args.classes, "slowdown": args.slowdown}
    question |= {"identical": args.identical, "slowed": args.slowed, "margin": args.margin, "patterns": args.metric}
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:12]
    state = repository.state_folder / f"calibrate-{digest}.json"
    with terminated_as_interrupt():
        amounts = args.identical, args.slowed, args.slowdown
        found = calibrate(repository, revision, settings, *amounts, args.classes, machine, state, _progress)
    path = args.results / machine / "calibration" / (re.sub(r"\W+", "-", args.workload) + ".jsonl")
    earlier = path.read_text(encoding="utf-8") if path.exists() else ""
    write_whole(path, earlier + found.to_json() + "\n", "storing the calibration")
    state.unlink(missing_ok=True)
    print(render(found))
    print(f"stored in {path}")
    return int(Exit.PASSED)


def render(found: Calibration) -> str:
    """The figures with their intervals."""
    load = sorted(found.load_average)
    lines = [
        f"CI gate on {found.machine}: {found.workload} ({found.clock}), {len(found.metrics)} metrics judged together, "
        f"margin {found.margin:.0%}, load average {load[0]:.1f} to {load[-1]:.1f}",
    ]
    if found.identical:
        seconds, pairs = found.cost(found.identical)
        lines += [
            f"  identical commits: false alarms {found.false_alarms}, undecided {found.false_undecided}",
            f"    one verdict costs {seconds:.1f} s, {pairs:.0f} pairs (medians)",
        ]
    if found.injected():
        seconds, pairs = found.cost(found.injected())
        size = found.injected()[0].slowdown
        lines += [
            f"  {size:+.1%} in one class: found {found.power()}, passed {found.missed()}",
            f"    one verdict costs {seconds:.1f} s, {pairs:.0f} pairs (medians)",
        ]
        lines += [f"    {kind}: {found.power(kind)}" for kind in sorted({trial.kind for trial in found.injected()})]
    return "\n".join(lines)


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 or more")
    return value


def _progress(line: str) -> None:
    print(f"calibrate: {line}", file=sys.stderr, flush=True)
