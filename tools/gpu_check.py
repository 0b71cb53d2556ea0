"""Everything that needs a GPU, in one command: the kernels' tests, compute-sanitizer, and a model's whole walls.

    python tools/gpu_check.py [--out FOLDER] [--model FILE.gguf] [tests] [sanitize] [wall]

Without steps it runs all three. Full logs and numbers go to FOLDER (default gpu_check/), a short table comes last.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
SAMPLES = 12
DECODED = 64


def run_tests(out: Path, command: list[str], name: str, select: str) -> str:
    """Run pytest over tests/gpu under ``command``; the last line of what it said."""
    pytest = [*command, sys.executable, "-m", "pytest", "tests/gpu", "-q", "-p", "no:cacheprovider", "-k", select]
    started = time.perf_counter()
    done = subprocess.run(pytest, cwd=CHECKOUT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": _path()})
    (out / f"{name}.log").write_text(done.stdout + done.stderr)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "========= ERROR SUMMARY"))]
    summary = [line for line in done.stdout.splitlines() if " passed" in line or " failed" in line or " error" in line]
    head = "\n".join(lines[:12])
    seconds = time.perf_counter() - started
    return f"{head}\n{name}: exit {done.returncode}, {(summary or ['no summary'])[-1]}, {seconds:.0f} s".strip()


def _path() -> str:
    return os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))


def sanitize(out: Path) -> list[str]:
    """Memory and race checks over the shapes that cross tile borders."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return ["sanitizer: compute-sanitizer is not installed, nothing checked"]
    chosen = {
        "memcheck": "((7 or 511 or dequantise or embedding or vector or rows or every_type or router or combination) "
        "and not 3325 and not numpy and not plain and not choices) or (few_choices and skewed) "
        "or (many_choices and (130-256 or 96-768)) or (choices_are_grouped and 511) or (plain and 7-576)",
        "racecheck": "(fa and 511 and 128) or (few and 7) or (rms_norm and 7) or (residual and 7) or (bt and 511) "
        "or (vector and 257 and (q4_K or q6_K)) or (grouped and 256) or (mmq and 7 and q4_K) or (tile and 7) "
        "or (many_choices and 130-256) or (choices_are_grouped and 511) or (router and 7) or (brought and 3) "
        "or (few_choices and skewed and (q4_K or q6_K))",
    }
    return [
        run_tests(out, [tool, "--tool", name, "--error-exitcode", "9"], name, f"({select}) and not context")
        for name, select in chosen.items()
    ]


def walls(out: Path, model: str, settings: list[str]) -> list[str]:
    """Whole prefills at the two published lengths, and decode, for each setting of the gates."""
    sys.path.insert(0, str(CHECKOUT))
    import numpy as np

    import minfer
    from minfer.gates import parse_settings

    lines, results = [], []
    random = np.random.default_rng(0)
    for setting in settings:
        engine = minfer.load(model, backend="cuda", ubatch=4096, context=4096, gates=parse_settings(setting))
        for nt in (512, 3325):
            tokens = random.integers(0, engine.config.vocabulary, nt)
            samples = []
            for _ in range(SAMPLES + 3):
                engine.synchronize()
                started = time.perf_counter()
                engine.prefill(tokens)
                samples.append((time.perf_counter() - started) * 1e3)
            kept = samples[3:]
            results.append({"gates": engine.gates, "nt": nt, "milliseconds": samples, "memory": engine.memory()})
            label, middle = f"{setting or 'default':20}", statistics.median(kept)
            lines.append(
                f"{label} nt {nt:5}: median {middle:8.2f} ms of {len(kept)}, {min(kept):.2f} to {max(kept):.2f}, "
                f"{nt / middle * 1e3:8.0f} tok/s"
            )
        engine.prefill(random.integers(0, engine.config.vocabulary, 512))
        started = time.perf_counter()
        for token in random.integers(0, engine.config.vocabulary, DECODED):
            engine.decode(int(token))
        each = (time.perf_counter() - started) / DECODED * 1e3
        results.append({"gates": engine.gates, "decode milliseconds": each})
        lines.append(f"{label} decode: {each:.3f} ms a token over {DECODED} at depth 512, {1e3 / each:.0f} tok/s")
        lines.append(f"{label} memory MiB: " + ", ".join(f"{k} {v / 2**20:.0f}" for k, v in engine.memory().items()))
        del engine
    (out / "walls.json").write_text(json.dumps(results, indent=1))
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=CHECKOUT / "gpu_check", help="folder for logs and numbers")
    parser.add_argument("--model", help="GGUF file for the walls")
    parser.add_argument("--gates", action="append", help="a setting to measure, such as fa=0; may be given again")
    parser.add_argument("steps", nargs="*", help="tests, sanitize, wall; all where none is named")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    steps = args.steps or ["tests", "sanitize", "wall"]
    lines = []
    if "tests" in steps:
        lines.append(run_tests(args.out, [], "tests", "test"))
    if "sanitize" in steps:
        lines += sanitize(args.out)
    if "wall" in steps:
        lines += walls(args.out, args.model, args.gates or [""]) if args.model else ["walls: no --model given"]
    print("\n".join(lines))
    return int(any("exit 0" not in line for line in lines if ": exit " in line))


if __name__ == "__main__":
    sys.exit(main())
