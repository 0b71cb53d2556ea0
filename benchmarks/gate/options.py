"""The command-line options that ``gate``, ``bisect`` and ``calibrate`` share, and Settings made from them."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ..attribution.errors import UserFacingError
from ..attribution.statistics.paired import ALPHA, BETA, FLOOR_SHARE, MARGIN, Rule
from ..capture.conditions import Limits
from ..capture.machine import machine_class
from .compare import DETERMINISTIC, PREFILL, Settings

VARIABLES = ("MINFER_GATES", "MINFER_MODEL", "CUDA_VISIBLE_DEVICES")
"""What the environment can say of the measurement; commands to repeat it say it too."""
CHECKOUT = Path(__file__).resolve().parents[2]


def add_measuring(parser: argparse.ArgumentParser, budget: float = 900) -> None:
    """What is measured and how long."""
    add = parser.add_argument
    foreign = Limits().foreign_cpu
    add("--repository", type=Path, default=CHECKOUT, metavar="FOLDER", help="git checkout (default: this one)")
    add("--workload", default=PREFILL, metavar="MODULE:FUNCTION", help="what a process measures (default: %(default)s)")
    add("--model", type=Path, metavar="FILE", help=f"GGUF file, for --workload {PREFILL}")
    add("--nt", type=_positive, action="append", default=[], metavar="N", help="prompt tokens; may be repeated")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the workload; may be repeated")
    counted = "samples a process, their median counts (default: %(default)s)"
    add("--samples", type=_positive, default=3, metavar="N", help=counted)
    add("--warmups", type=_natural, default=1, metavar="N", help="samples a process drops first (default: %(default)s)")
    add("--budget", type=_seconds, default=budget, metavar="SECONDS", help=f"add no pair after this (default: {budget:.0f})")
    add("--timeout", type=_seconds, default=600, metavar="SECONDS", help="longest that one process may take (default: 600)")
    add("--max-pairs", type=_positive, metavar="N", help="stop after so many pairs even if undecided")
    quarantine = f"quarantine a pair where others use more of all cores than this (default: {foreign}); 1 never does"
    add("--foreign-limit", type=_share, default=foreign, metavar="SHARE", help=quarantine)


def add_deciding(parser: argparse.ArgumentParser) -> None:
    """The decision rule and which metrics it judges."""
    add = parser.add_argument
    floor = f"a smaller change passes, whatever its share (default: {FLOOR_SHARE} of the margin, of the wall)"
    add("--margin", type=_share, default=MARGIN, metavar="SHARE", help=f"slowdown that passes (default: {MARGIN})")
    add("--floor-us", type=_microseconds, metavar="US", help=floor)
    add("--metric", action="append", default=[], metavar="PATTERN", help="judge only these, such as 'prefill@512/*'")


def settings_from(args: argparse.Namespace) -> Settings:
    """Raises UserFacingError for an option whose value cannot be used."""
    if ":" not in args.workload.strip(":"):
        raise UserFacingError(f"--workload {args.workload!r}: expected MODULE:FUNCTION")
    parameters: dict[str, str] = {}
    for entry in args.set:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise UserFacingError(f"--set {entry!r}: expected NAME=VALUE")
        parameters[name] = value
    ignored = [f"--{name}" for name in ("model", "nt") if getattr(args, name)] if args.workload == DETERMINISTIC else []
    if ignored:
        raise UserFacingError(
            f"{' and '.join(ignored)}: workload {DETERMINISTIC} runs no model; to measure a prefill add --workload {PREFILL}"
        )
    if args.model is not None and not args.model.is_file():
        raise UserFacingError(f"--model {args.model}: no such file; give a GGUF file")
    floor = getattr(args, "floor_us", None)
    return Settings(
        workload=args.workload,
        samples=args.samples,
        warmups=args.warmups,
        model=str(args.model.resolve()) if args.model else None,
        nt=tuple(args.nt),
        parameters=parameters,
        patterns=tuple(args.metric) if isinstance(getattr(args, "metric", None), list) else (),
        rule=Rule(getattr(args, "margin", MARGIN), floor * 1e-6 if floor is not None else None, ALPHA, BETA),
        budget=args.budget,
        timeout=args.timeout,
        most_pairs=args.max_pairs,
        resume=getattr(args, "resume", False),
        repository=None if args.repository.resolve() == CHECKOUT else str(args.repository.resolve()),
        environment={name: os.environ[name] for name in VARIABLES if os.environ.get(name)},
        limits=Limits(args.foreign_limit, 1.0) if args.foreign_limit == 1 else Limits(args.foreign_limit),
    )


def machine_name() -> str:
    """The name under which results are kept: MINFER_MACHINE, or the machine's class; never a host name."""
    return os.environ.get("MINFER_MACHINE") or machine_class()


@contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """CI systems cancel with SIGTERM: clean up as after Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return value


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 or more")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a share above 0 and up to 1, such as 0.02")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected seconds above 0")
    return value


def _microseconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected microseconds, 0 or more")
    return value
