"""``python -m benchmarks changes``: where did stored results, or the series of any CSV, change for good?

Exit codes: 0 examined (whatever was found), 1 with --fail-on-slower and an undecided change for the worse, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from ..attribution.change_report import Change, History, examine, from_csv, from_results
from ..attribution.errors import UserFacingError
from ..attribution.git import GitError, run_git
from ..attribution.history import Commit, read_history
from ..attribution.series_csv import read_series_csv
from ..attribution.triage import STATES, Triage, TriageError, read_triage, write_triage

SUMMARY = "change points of stored results or of a CSV: which commit, how much, slower or only a larger share"
_DECIDED = ("accepted", "dismissed")
_MANY_POINTS = 200_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--csv", type=Path, metavar="FILE", help="examine a CSV: columns series, position, value [, window, wall, commit]")
    add("--direction", choices=("lower", "higher", "neither"), default="lower", help="which way is better in the CSV")
    add("--results", type=Path, default=Path("results"), metavar="DIR", help="folder of stored results (default: results)")
    add("--repository", type=Path, default=Path(), metavar="DIR", help="the git history that orders commits")
    add("--series", metavar="TEXT", help="only series whose machine/name contains this")
    add("--newest", type=int, metavar="N", help="only changes in the newest N points of their series")
    add("--json", action="store_true", help="print JSON keyed by series instead of lines")
    add("--fail-on-slower", action="store_true", help="exit 1 on a change for the worse that nobody accepted or dismissed")
    add("--workers", type=int, default=os.cpu_count() or 1, help="processes for large inputs (default: all cores)")
    decide = parser.add_argument_group("store a decision about one change instead of looking for changes")
    decide.add_argument("--decide", choices=STATES, help="with --machine, --series, --commit and --reason")
    decide.add_argument("--machine", default="", help="as in results/<machine>")
    decide.add_argument("--commit", help="the commit of the change, as printed")
    decide.add_argument("--reason", default="", help="why")
    decide.add_argument("--link", default="", help="where a linked change is worked on")
    decide.add_argument("--author", help="who decides (default: git's user.name)")


def run(args: argparse.Namespace) -> int:
    if args.decide:
        return _decide(args)
    if args.newest is not None and args.newest < 1:
        raise UserFacingError(f"--newest {args.newest}: expected 1 or more")
    if args.workers < 1:
        raise UserFacingError(f"--workers {args.workers}: expected 1 or more")
    commits: tuple[Commit, ...] = ()
    if args.csv:
        histories, decisions = from_csv(read_series_csv(args.csv), args.direction), {}
    else:
        commits, decisions = _commits(args.repository), read_triage(_folder(args.results))
        histories = from_results(args.results, commits)
    if args.series:
        histories = [history for history in histories if args.series in history.key]
    many = sum(len(history.values) for history in histories) >= _MANY_POINTS
    examined = examine(histories, decisions, args.workers if many else 1)
    if args.newest:
        examined = [
            (history, [one for one in changes if one.point.index >= len(history.values) - args.newest])
            for history, changes in examined
        ]
    if args.json:
        print(json.dumps(_keyed(examined), indent=1, allow_nan=False))
    else:
        _print(examined, {commit.id: commit.subject for commit in commits})
    undecided = [
        one for _, changes in examined for one in changes
        if one.worse and not (one.decision and one.decision.state in _DECIDED)
    ]  # fmt: skip
    return 1 if args.fail_on_slower and undecided else 0


def _keyed(examined: list[tuple[History, list[Change]]]) -> dict[str, list[dict[str, object]]]:
    """Series of one key (an environment or benchmark version each) follow one another."""
    keyed: dict[str, list[dict[str, object]]] = {}
    for history, changes in examined:
        keyed.setdefault(history.key, []).extend(change.to_json() for change in changes)
    return keyed


def _folder(results: Path) -> Path:
    if not results.is_dir():
        raise UserFacingError(f"{results}: no such folder of results; measure first, or name one with --results")
    return results


def _commits(repository: Path) -> tuple[Commit, ...]:
    try:
        return read_history(repository)
    except GitError:
        # Results can be examined without their repository: dates order them, and subjects are left out.
        return ()


def _print(examined: list[tuple[History, list[Change]]], subjects: dict[str, str]) -> None:
    points = sum(len(history.values) for history, _ in examined)
    found = [change for _, changes in examined for change in changes]
    for change in found:
        print(line(change, subjects))
    moved = len({id(change.history) for change in found})
    print(f"{len(found)} changes in {moved} of {len(examined)} series ({points} points)")


def line(change: Change, subjects: dict[str, str]) -> str:
    """One change for people: series, where, words, ratio with its 95 % interval, values, decision."""
    history, point = change.history, change.point
    where = f"point {point.index}"
    if history.positions:
        where = f"position {history.positions[point.index]:g}"
    if change.commit:
        subject = subjects.get(change.commit)
        where = f"{change.commit[:10]}" + (f' "{subject}"' if subject else "")
    ratio = "no ratio (values of 0 or less)"
    if point.shift.ratio is not None:
        ratio = f"x{point.shift.ratio:.4f} (95 % {point.shift.low:.4f}..{point.shift.high:.4f})"
    unit = f" {history.unit}" if history.unit else ""
    text = f"{history.key}: {where}: {_words(change)} {ratio}, {point.before:.6g} -> {point.after:.6g}{unit}"
    if point.latest > point.earliest:
        text += f", between points {point.earliest} and {point.latest}"
    return text + (f" [{change.decision.words}]" if change.decision else "")


def _words(change: Change) -> str:
    if change.share:
        return change.share.words + ";"
    if change.history.direction == "neither":
        return "rose" if change.rose else "fell"
    if change.history.unit in ("bytes", "MiB", "GiB"):
        return "more" if change.rose else "less"
    return "slower" if change.worse else "faster"


def _decide(args: argparse.Namespace) -> int:
    if not args.series or not args.commit:
        raise TriageError("--decide needs --series (the full name) and --commit, as the line of the change shows them")
    author = args.author or _git_user(args.repository)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    triage = Triage(args.machine, args.series, args.commit, args.decide, args.reason, author, now, args.link)
    print(f"{write_triage(_folder(args.results), triage)}: {triage.words}")
    return 0


def _git_user(repository: Path) -> str:
    try:
        name = run_git(repository, "config", "user.name")
    except GitError:
        name = ""
    if not name:
        raise TriageError("nobody to name as the one who decided; give --author, or set git's user.name")
    return name
