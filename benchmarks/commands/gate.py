"""``python -m benchmarks gate``: is head slower than base? Exit codes: docs/gate.md."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import traceback
from pathlib import Path

from ..attribution.acceptance import Acceptance, read_acceptances
from ..attribution.errors import UserFacingError
from ..gate import report_json, report_junit, report_markdown, report_text
from ..gate.compare import Comparison, compare
from ..gate.exits import BenchmarkFailedError, Exit, MachineUnfitError, NothingMeasuredError
from ..gate.files import disk_errors, write_whole
from ..gate.options import add_deciding, add_measuring, machine_name, settings_from, terminated_as_interrupt
from ..gate.repository import Repository
from ..gate.verdict import Result, conclude

SUMMARY = "the CI gate: measure two commits next to each other and say whether head is slower"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--base", required=True, metavar="REV", help="the commit to compare with")
    add("--head", metavar="REV", help="the commit to judge (default: HEAD, if nothing is uncommitted)")
    add_deciding(parser)
    add_measuring(parser)
    add("--resume", action="store_true", help="go on from the pairs of the last run with the same commits and settings")
    add("--allow-undecided", action="store_true", help="exit 0 where the pairs cannot tell; the report says so")
    add("--no-static", action="store_true", help="do not compare what the compiler made of the kernels")
    add("--json", type=Path, metavar="FILE", help="write the verdict and every pair as JSON")
    add("--junit", type=Path, metavar="FILE", help="write JUnit XML, one test case a metric")
    add("--markdown", type=Path, metavar="FILE", help="write a pull request comment")


class GateStoppedError(UserFacingError):
    """What stopped the gate, with the exit code that documents it."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.exit_code = int(code)


def run(args: argparse.Namespace) -> int:
    """Reports are written whatever the outcome, also where there is no verdict."""
    for path in (args.json, args.junit, args.markdown):
        # Better now than after half an hour of measuring.
        if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
            raise UserFacingError(f"{path}: cannot be written; name a file in a folder that exists")
    with terminated_as_interrupt():
        try:
            result, comparison = _judge(args)
        except UserFacingError as error:
            # Another part's error may carry a code that means something else here, above all 1.
            own = isinstance(error, BenchmarkFailedError | NothingMeasuredError | MachineUnfitError)
            code, text = Exit(error.exit_code) if own else Exit.FAILED, str(error)
            _write(args, report_markdown.render_error(code, text), report_junit.render_error(code, text),
                   report_json.render_error(code, text))  # fmt: skip
            raise GateStoppedError(text, code) from error
        except Exception:  # noqa: BLE001
            # Python would exit with 1, and 1 means that a commit is slower: no fault of the gate's own may say that.
            traceback.print_exc()
            return int(Exit.FAILED)
        print(report_text.render(result))
        json = report_json.render(result, comparison.series)
        _write(args, report_markdown.render(result), report_junit.render(result), json)
        return int(result.exit)


def _judge(args: argparse.Namespace) -> tuple[Result, Comparison]:
    settings = settings_from(args)
    repository = Repository(args.repository)
    base, head = repository.revision(args.base), repository.revision(args.head or "HEAD")
    warnings = _dirty(repository, args.head)
    fork = repository.merge_base(base.commit, head.commit)
    if fork != base.commit:
        warnings.append(
            f"base is no ancestor of head, so what only base has is part of the difference; --base {(fork or 'REV')[:10]} "
            "measures head's own changes"
        )
    if base.commit == head.commit:
        raise NothingMeasuredError(f"base and head are the same commit {base.short} ({args.base}); name two commits")
    settings = dataclasses.replace(settings, with_compiled=not args.no_static)
    comparison = compare(repository, base, head, settings, _progress)
    between = int(repository.git("rev-list", "--count", f"{base.commit}..{head.commit}"))
    accepted = repository.accepted(base.commit, head.commit)
    earlier = repository.accepted(None, base.commit)
    result = conclude(base, head, comparison, settings, accepted, between, args.allow_undecided, warnings, earlier)
    if accepted and (result.regressed or result.compiled.worse):
        _store_acceptance(repository, result)
    return result, comparison


def _store_acceptance(repository: Repository, result: Result) -> None:
    path = repository.root / "results" / machine_name() / "accepted.jsonl"
    worse = result.compiled.worse
    traded = (*(f.name for f in result.regressed), *(f"{c.kernel} {c.target} {c.metric}" for c in worse))
    changes = (*(f.change for f in result.regressed), *(c.after / c.before - 1 if c.before else None for c in worse))
    known = {(one.commit, one.base) for one in read_acceptances(path)}
    found = [
        Acceptance(one.commit, one.reason, result.base.commit, result.head.commit, traded, changes)
        for one in result.accepted
        if (one.commit, result.base.commit) not in known
    ]
    if found:
        earlier = path.read_text(encoding="utf-8") if path.exists() else ""
        write_whole(path, earlier + "".join(one.to_json() + "\n" for one in found), "storing what was accepted")


def _dirty(repository: Repository, head: str | None) -> list[str]:
    """Someone who edits and then runs the gate must not be told that the old commit is fast."""
    changed = repository.uncommitted()
    if not changed:
        return []
    names = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
    if head is None:
        raise UserFacingError(
            f"{repository.root} has uncommitted changes ({names}) and the CI gate measures commits: "
            "commit or stash them, or say --head HEAD to measure without them"
        )
    return [f"uncommitted changes are not measured: {names}"]


def _progress(line: str) -> None:
    print(f"gate: {line}", file=sys.stderr, flush=True)


def _write(args: argparse.Namespace, markdown: str, junit: str, json: str) -> None:
    for path, text in ((args.markdown, markdown), (args.junit, junit), (args.json, json)):
        if path is not None:
            write_whole(path, text, "writing the report")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with disk_errors("writing the step summary", Path(summary)), Path(summary).open("a", encoding="utf-8") as file:
            file.write(markdown)
