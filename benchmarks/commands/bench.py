"""The main job: measure HEAD and the last few commits of the engine, keep the results, show where the time went."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from ..asv_output import run_asv
from ..attribution.errors import UserFacingError
from ..attribution.git import run_git
from ..attribution.record_files import read_records
from ..capture.machine import machine_class
from ..capture.nvml import first_visible_device
from ..history import commits_to_measure, engine_commits, uncommitted_changes
from ..models import model_path, named_model, result_name
from ..progress import VARIABLE, Follow
from ..report.record_text import render_record

SUMMARY = "measure HEAD and earlier commits (asv), write results/, print the decomposition"

SERIES = r"^(prefill|versus_llama)\."
"""What one window of a commit gives. The static figures of kernels need no measurement; `asv run` alone takes them too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--commits", type=int, default=4, metavar="N", help="how many: HEAD and earlier ones (default 4)")
    parser.add_argument("--range", metavar="A..B", help="instead: this range's commits that changed the engine")
    parser.add_argument("--only", metavar="FILE", help="instead: the commits that FILE lists, one a line")
    parser.add_argument("--again", action="store_true", help="measure also what has results already")
    parser.add_argument("--series", default=SERIES, metavar="REGEX", help="asv series to store (default: those of a window)")
    parser.add_argument("--from-records", action="store_true", help="take the series from kept records; measure nothing")
    parser.add_argument("--machine", help="name to file the results under (default: this machine's class)")


def run(args: argparse.Namespace) -> int:
    root = Path(__file__).resolve().parents[2]
    model = named_model() if args.from_records else model_path()
    machine = args.machine or machine_class()
    commits = _commits(root, args)
    changed = uncommitted_changes(root)
    if changed:
        print(f"bench: {len(changed)} uncommitted changes of the engine are NOT measured; commit them to see what they do")
    listed = " ".join(commit[:8] for commit in commits)
    print(f"bench: {model.name} on {machine}, {len(commits)} commits: {listed}", flush=True)
    environment = {**os.environ, "MINFER_MACHINE": machine, "MINFER_MODEL": str(model), "MINFER_MODELS": str(model.parent)}
    if args.from_records:
        environment |= _as_recorded(root / "results" / machine, commits)
    wanted = commits
    if not (args.again or args.from_records):
        wanted = [commit for commit in commits if not _is_measured(root / "results" / machine, commit, model.stem)]
        print(f"bench: {len(commits) - len(wanted)} of them have results already (--again measures them anew)", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        hashes = Path(scratch) / "commits"
        hashes.write_text("\n".join(wanted) + "\n", encoding="ascii")
        progress = Path(scratch) / "progress"
        environment[VARIABLE] = str(progress)
        # One process imports the suite and forks for each value stored (35 ms instead of 550); CUDA starts after the fork.
        options = ["--machine", machine, "--bench", args.series, "--show-stderr", "--launch-method", "forkserver"]
        with Follow(progress, sys.stdout):
            code = _asv(root, environment, "run", f"HASHFILE:{hashes}", *options) if wanted else 0
    if code not in (0, 2):
        return code
    return _show(root, machine, commits, model.stem) or code


def _is_measured(folder: Path, commit: str, model: str) -> bool:
    """Whether asv has results of this commit, on this machine, of this model and these gates.

    asv's own --skip-existing-commits asks for any result of the commit, whatever the machine or the model.
    """
    with_gates = bool(os.environ.get("MINFER_GATES"))
    found = folder.glob(f"{commit[:8]}-*-model{result_name(model)}.json")
    return any(("-gates" in path.name) == with_gates for path in found)


def _as_recorded(folder: Path, commits: list[str]) -> dict[str, str]:
    """Let asv speak of the machine that measured, which need not be this one. Raises UserFacingError without records."""
    from ..asv_machine import register

    paths = [folder / "records" / f"{commit}.jsonl" for commit in commits]
    kept = [path for path in paths if path.is_file()]
    if not kept:
        raise UserFacingError(f"{folder}: no record of these commits; measure them without --from-records")
    recorded = read_records(kept[0])[-1].machine
    register(recorded)
    return {"MINFER_FROM_RECORDS": "1", "MINFER_ENVIRONMENT_PYTHON": ".".join(recorded.python.split(".")[:2])}


def _commits(root: Path, args: argparse.Namespace) -> list[str]:
    if args.only:
        return [run_git(root, "rev-parse", "--verify", f"{line.split()[0]}^{{commit}}") for line in _lines(Path(args.only))]
    backend = _backend()
    if args.range:
        return engine_commits(root, args.range, backend)
    return commits_to_measure(root, max(1, args.commits), backend)


def _backend() -> str:
    """The backend that the engine will choose, asked without loading any commit's: cuda needs a device and CuPy."""
    named = os.environ.get("MINFER_BACKEND", "auto")
    if named != "auto":
        return named
    return "cuda" if first_visible_device() is not None and find_spec("cupy") is not None else "numpy"


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise UserFacingError(f"{path}: {error.strerror}; --only takes a file with a commit a line") from error


def _asv(root: Path, environment: dict[str, str], *arguments: str) -> int:
    return run_asv([sys.executable, "-m", "asv", *arguments], root, environment, sys.stdout, sys.stderr)


def _show(root: Path, machine: str, commits: list[str], model: str) -> int:
    """The newest measured commit's portrait, and the way on."""
    for commit in commits:
        path = root / "results" / machine / "records" / f"{commit}.jsonl"
        records = [record for record in read_records(path) if record.model.name == model] if path.is_file() else []
        if records:
            record = records[-1]
            subject = run_git(root, "show", "-s", "--format=%s", commit)
            print(f"\n{render_record(record, subject)}")
            print("\nOpen the history: make dashboard      Every number is in results/")
            return 0
    print("bench: no commit was measured; asv's messages above say why", file=sys.stderr)
    return 3
