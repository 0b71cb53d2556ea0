"""``python -m benchmarks bisect``: which commit made a metric slower. Exit codes: docs/gate.md."""

from __future__ import annotations

import argparse
import sys

from ..attribution.errors import UserFacingError
from ..gate.bisect import Found, RevertOutcome, bisect
from ..gate.exits import Exit
from ..gate.options import add_deciding, add_measuring, settings_from, terminated_as_interrupt
from ..gate.repository import Repository

SUMMARY = "find the commit that made a metric slower, in log steps, and confirm it by reverting it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("range", metavar="GOOD..BAD", help="a fast commit and a slow one after it")
    add_deciding(parser)
    add_measuring(parser, budget=300)
    parser.add_argument("--resume", action="store_true", help="go on from the pairs taken earlier with the same settings")


def run(args: argparse.Namespace) -> int:
    """0: one commit found and confirmed; 4: narrowed down or not confirmed; 3: no regression between the ends."""
    good_name, dots, bad_name = args.range.partition("..")
    if not dots or not good_name or not bad_name or bad_name.startswith("."):
        raise UserFacingError(f"range {args.range!r}: expected GOOD..BAD, such as v1.0..HEAD")
    if len(args.metric) != 1:
        raise UserFacingError("bisect follows one metric: give --metric once, such as --metric prefill@512/attention")
    settings = settings_from(args)
    repository = Repository(args.repository)
    good, bad = repository.revision(good_name), repository.revision(bad_name)
    with terminated_as_interrupt():
        found = bisect(repository, good, bad, args.metric[0], settings, _progress)
    print(_render(found))
    return int(Exit.PASSED if found.revert is RevertOutcome.CONFIRMED else Exit.UNDECIDED)


def _render(found: Found) -> str:
    whole = found.whole
    lines = [f"{whole.name}: {whole.change:+.1%} from {found.good.short} to {found.bad.short}"]
    for step in found.steps:
        lines.append(f"  {step.revision.short} {step.side:<13} {step.detail}  {step.revision.subject}")
    many = f"one of {len(found.suspects)} commits (none between could be judged)"
    title = "the commit" if len(found.suspects) == 1 else many
    lines.append(f"{title}:")
    lines += [f"  {suspect.short} {suspect.subject}" for suspect in found.suspects]
    lines.append(f"revert check: {found.revert or 'not made'}: {found.revert_detail}")
    return "\n".join(lines)


def _progress(line: str) -> None:
    print(f"bisect: {line}", file=sys.stderr, flush=True)
