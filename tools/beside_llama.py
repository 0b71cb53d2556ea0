"""Prefill and decode of the engine beside llama.cpp in one process, in turn: `python tools/beside_llama.py MODEL...`.

A round is one prefill and the decoding of some tokens after it, of each engine; rounds alternate in order. Printed are
medians, the range of the middle half, and the ratio of each round's pair: its median, and the same range. `make bench`
measures prefill with more care (conditions, quarantine, records); decode is measured here alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.capture.gpu_instrument import ALL_LAYERS
from benchmarks.engine import EngineOptions, MeasuredEngine
from benchmarks.interleave import SETTLE_S
from benchmarks.peers.llama_cpp import LlamaCpp, PeerOptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", metavar="MODEL", type=Path, nargs="+")
    parser.add_argument("--nt", type=int, default=512, metavar="N", help="tokens of the prompt (default 512)")
    parser.add_argument("--steps", type=int, default=32, metavar="N", help="tokens decoded after it (default 32)")
    parser.add_argument("--rounds", type=int, default=12, metavar="N")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="of the peer")
    parser.add_argument("--backend", default="numpy", choices=("numpy", "cuda"), help="of the engine; the peer follows it")
    parser.add_argument("--gates", default="", metavar="A=1,B=0", help="of the engine")
    args = parser.parse_args()
    for model in args.models:
        beside(model, args)


def beside(model: Path, args: argparse.Namespace) -> None:
    """Measure one model and print it."""
    gates = dict(part.split("=", 1) for part in args.gates.split(",") if part)
    engine = MeasuredEngine(model, EngineOptions(args.backend, context=args.nt + args.steps, gates=gates))
    tokens = [int(token) for token in np.random.default_rng(0).integers(0, engine.vocabulary, args.nt)]
    layers = ALL_LAYERS if args.backend == "cuda" else 0
    with LlamaCpp(model, PeerOptions(nt=args.nt + args.steps, threads=args.threads, gpu_layers=layers)) as peer:
        arms = {"minfer": (engine.prefill, engine.decode), "llama.cpp": (peer.prefill, peer.decode)}
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
        for number in range(args.rounds + 1):
            for name in arms if number % 2 else reversed(arms):
                time.sleep(SETTLE_S)
                sample = one_round(*arms[name], tokens, args.steps)
                if number:  # the first round warms up
                    taken[name].append(sample)
    print(f"{model.name}: nt {args.nt}, n = {args.rounds}, {peer.name} {peer.version}, gates {engine.gates}")
    for index, what in enumerate(("prefill, ms", "decode, ms a token")):
        ours, theirs = (np.array([sample[index] for sample in taken[name]]) / 1e6 for name in arms)
        print(f"  {what:<20} minfer {spread(ours, 1)}  {peer.name} {spread(theirs, 1)}  ratio {spread(ours / theirs, 2)}")


def one_round(
    prefill: Callable[[list[int]], int], decode: Callable[[int], int], tokens: list[int], steps: int
) -> tuple[float, float]:
    """Ns of a prefill, and the median ns of a token decoded after it."""
    whole = prefill(tokens)
    return whole, float(np.median([decode(tokens[step]) for step in range(steps)]))


def spread(values: np.ndarray, digits: int) -> str:
    low, middle, high = np.percentile(values, (25, 50, 75))
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


if __name__ == "__main__":
    main()
