"""llama.cpp by its own llama-bench, any binary that the user has: walls without classes.

``MINFER_LLAMA_BENCH`` names the binary; otherwise one on the PATH is taken. Its first repetition is the slowest by far even
after its own warm-up, so one more is asked for and the first is dropped.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..attribution.events import BenchResult, TraceError
from ..attribution.ingest.llama_bench import read_results
from ..programs import find_program
from .llama_library import PeerUnavailableError

TIMEOUT_S = 900
DROPPED = 1


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """How llama-bench runs; flash attention on where the model is on a device, as in process."""

    nt: int
    ubatches: Sequence[int]
    repetitions: int
    threads: int
    gpu_layers: int


def llama_bench_binary() -> Path | None:
    """The binary to run, if there is one. Raises PeerUnavailableError where the user's own is not there."""
    return find_program("MINFER_LLAMA_BENCH", "llama-bench", PeerUnavailableError)


def run_llama_bench(binary: Path, model: Path, options: BenchOptions) -> tuple[BenchResult, ...]:
    """One result an ubatch, each with ``repetitions`` samples. Raises PeerUnavailableError with llama-bench's own words."""
    command = [str(binary), "-m", str(model), "-p", str(options.nt), "-n", "0", "-b", str(max(options.nt, 1))]
    command += ["-ub", ",".join(map(str, options.ubatches)), "-t", str(options.threads)]
    command += ["-r", str(options.repetitions + DROPPED), "-o", "jsonl"]
    command += ["-ngl", str(options.gpu_layers), "-fa", "1" if options.gpu_layers else "auto"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailableError(f"{binary.name}: {error}; run it by hand: {' '.join(command)}") from error
    by_hand = f"run it by hand: {' '.join(command)}"
    if done.returncode != 0:
        words = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerUnavailableError(f"{binary.name}: exit code {done.returncode}: {words}; {by_hand}")
    try:
        results = read_results(done.stdout, Path("llama-bench's output"))
    except TraceError as error:
        raise PeerUnavailableError(str(error)) from error
    wrong = [result for result in results if result.nt != options.nt or result.generated]
    if wrong or len(results) != len(options.ubatches):
        expected = f"expected {len(options.ubatches)} at nt {options.nt}"
        raise PeerUnavailableError(f"{binary.name}: {len(results)} results, {expected}; {by_hand}")
    return results


def kept_samples(result: BenchResult) -> tuple[int, ...]:
    """Walls in ns without the first repetition."""
    return result.samples_ns[DROPPED:]
