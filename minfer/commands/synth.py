"""``minfer synth``: write a model of random weights in a real model's shape and mix."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ..synthesis.mixes import MIXES
from ..synthesis.shapes import ARCHITECTURES, SHAPES
from ..synthesis.write import Progress, synthesise
from ._engine import natural

SUMMARY = "write a model of random weights in a real model's shape and mix of quantisations"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="OUT", help="the GGUF file to write")
    parser.add_argument("--shape", default="tiny", metavar="NAME", help=f"one of {', '.join(SHAPES)} (default tiny)")
    parser.add_argument("--mix", default="q4_k_m", metavar="NAME", help=f"one of {', '.join(MIXES)} (default q4_k_m)")
    parser.add_argument("--arch", metavar="NAME", help=f"for tiny: one of {', '.join(ARCHITECTURES)}")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="default 0; the same seed gives the same file")
    parser.add_argument("--force", action="store_true", help="replace OUT where it is there")


def run(args: argparse.Namespace) -> int:
    began = time.perf_counter()
    size = synthesise(
        Path(args.out), args.shape, args.mix, architecture=args.arch, seed=args.seed, force=args.force, progress=_progress()
    )
    print(f"{args.out}: {size / 1e9:.3f} GB in {time.perf_counter() - began:.1f} s")
    return 0


def _progress() -> Progress:
    """A line on the terminal that counts up, at most ten times a second."""
    last = 0.0

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if sys.stderr.isatty() and (now - last > 0.1 or done == total):
            last = now
            end = "\n" if done == total else ""
            print(f"\rwriting {done / 1e9:.2f} of {total / 1e9:.2f} GB", end=end, file=sys.stderr, flush=True)

    return show
