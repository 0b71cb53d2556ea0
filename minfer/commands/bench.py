"""``minfer bench``: time prefill and decode, and say it as llama-bench does."""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from .. import __version__
from ..backends.cpu_kernels import blas_threads
from ..description import model_type, parameters, weight_bytes
from ..errors import MinferError
from ..llama_bench import Row, rendered, summary
from ..model import Engine
from ._engine import add_engine_options, load_engine, positive

SUMMARY = "time prefill and decode; the fields and formats are llama-bench's"

FORMS = ("md", "json", "jsonl", "csv", "sql")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_engine_options(parser)
    parser.add_argument("-p", "--n-prompt", default="512", metavar="N,...", help="prompt lengths (default 512; 0: none)")
    parser.add_argument("-n", "--n-gen", default="128", metavar="N,...", help="tokens to generate (default 128; 0: none)")
    parser.add_argument("-r", "--repetitions", type=positive, default=5, metavar="N", help="samples of each (default 5)")
    parser.add_argument("-t", "--threads", type=positive, metavar="N", help="threads of the kernels and of NumPy's BLAS")
    parser.add_argument("-o", "--output", choices=FORMS, default="md", help="default md")
    parser.add_argument("--no-warmup", action="store_true", help="no run before the first sample of a test")
    parser.add_argument("--seed", type=int, default=0, help="of the random prompt (default 0)")


def run(args: argparse.Namespace) -> int:
    prompts, generated = _counts(args.n_prompt, "-p"), _counts(args.n_gen, "-n")
    if not prompts and not generated:
        raise MinferError("nothing to time: give -p or -n with a number above 0")
    with nullcontext() if args.threads is None else threadpool_limits(args.threads, user_api="blas"):
        engine = load_engine(args, max(prompts + generated))
        rows = []
        for n_prompt, n_gen in [(count, 0) for count in prompts] + [(0, count) for count in generated]:
            rows.append(_measure(engine, args, n_prompt, n_gen))
            if args.output == "jsonl":
                print(rendered(rows[-1:], "jsonl"), end="", flush=True)
    if args.output != "jsonl":
        print(rendered(rows, args.output), end="")
    return 0


def _measure(engine: Engine, args: argparse.Namespace, n_prompt: int, n_gen: int) -> Row:
    tokens = np.random.default_rng(args.seed).integers(0, engine.config.vocabulary, max(n_prompt, n_gen)).tolist()
    began = datetime.now(UTC)
    samples = []
    for repetition in range(args.repetitions + (not args.no_warmup)):
        if sys.stderr.isatty():
            print(f"\r{'pp' if n_prompt else 'tg'}{n_prompt or n_gen} run {repetition + 1}", end="\r", file=sys.stderr)
        samples.append(_prefill_ns(engine, tokens) if n_prompt else _decode_ns(engine, tokens))
    measured = samples if args.no_warmup else samples[1:]
    gpu = engine.backend.name == "cuda"
    commit, number = _build()
    return Row(
        build_commit=commit, build_number=number, cpu_info=_cpu(), gpu_info=_gpu(engine),
        backends="CUDA" if gpu else "NumPy", model_filename=args.file,
        model_type=model_type(engine.file), model_size=weight_bytes(engine.file),
        model_n_params=parameters(engine.file), n_batch=engine.context, n_ubatch=engine.ubatch, n_threads=blas_threads(),
        cpu_mask="0x0", cpu_strict=False, poll=0, type_k="f16" if gpu else "f32", type_v="f16" if gpu else "f32",
        n_gpu_layers=99 if gpu else 0, n_cpu_moe=0, split_mode="none", main_gpu=0, no_kv_offload=False,
        flash_attn=int(bool(engine.gates.get("fa", False))), devices="auto", tensor_split="0.00",
        tensor_buft_overrides="none", load_mode="mmap", lazy_mode="auto", embeddings=False, no_op_offload=0, no_host=False,
        repack=False, fit_target=0, fit_min_ctx=0, n_prompt=n_prompt, n_gen=n_gen, n_depth=0,
        test_time=began.strftime("%Y-%m-%dT%H:%M:%SZ"), **summary(measured, n_prompt or n_gen),
    )  # fmt: skip


def _prefill_ns(engine: Engine, tokens: list[int]) -> int:
    """One whole prefill, from the call to the last token's logits, device synchronised."""
    engine.synchronize()
    began = time.perf_counter_ns()
    engine.prefill(tokens)
    engine.synchronize()
    return time.perf_counter_ns() - began


def _decode_ns(engine: Engine, tokens: list[int]) -> int:
    """All decode steps of one generation, from an empty cache; the tokens are given, not chosen, as llama-bench does."""
    engine.reset()
    engine.synchronize()
    began = time.perf_counter_ns()
    for token in tokens:
        engine.decode(token)
    engine.synchronize()
    return time.perf_counter_ns() - began


def _counts(text: str, option: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [-1]
    if min(counts) < 0:
        raise MinferError(f"{option} is {text!r}, expected whole numbers with commas between them, such as 512,2048")
    return [count for count in counts if count]


def _build() -> tuple[str, int]:
    """Commit and commit count of the checkout that the engine runs from; of an installed one, its version and 0."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return __version__, 0
    try:
        commit = _git(folder, "rev-parse", "--short", "HEAD")
        return commit, int(_git(folder, "rev-list", "--count", "HEAD"))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return __version__, 0


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True).stdout.strip()


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.processor() or platform.machine()
    return platform.processor() or platform.machine()


def _gpu(engine: Engine) -> str:
    """The device's name, which the cuda backend knows; empty without a GPU."""
    return str(getattr(getattr(engine.backend, "device", None), "name", ""))
