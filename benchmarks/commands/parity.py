"""``python -m benchmarks parity MODEL``: are the engine's answers llama.cpp's, on the user's own weights?"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..attribution.agreement import MEAN_KL_BAR, PERPLEXITY_BAR, Agreement, common_prefix, compare_logits
from ..attribution.errors import UserFacingError
from ..engine import EngineOptions, MeasuredEngine
from ..peers.float32_copy import float32_bytes, write_float32_copy
from ..peers.llama_cpp import LlamaCpp, PeerOptions

SUMMARY = "Compare the engine's logits and greedy continuations with llama.cpp's on a model and a text."

_TEXT = Path(__file__).resolve().parents[1] / "data" / "alice.txt"
"""The beginning of Lewis Carroll's Alice's Adventures in Wonderland (1865), in the public domain."""
_CONTINUED = 32
"""Tokens of the text that are continued greedily."""


_COPIED_UNASKED = 2 << 30
"""Up to this many bytes the float32 copy of the weights is made without being asked for."""


@dataclass(frozen=True, slots=True)
class Parity:
    """What was compared and how it came out."""

    model: str
    engine: str
    peer: str
    text: str
    same_ids: bool
    """Both tokenizers give the same ids."""
    agreement: Agreement
    exact: Agreement | None
    """Ours against the peer on float32 copies of the same weights, where it does not round activations."""
    peer_exact: Agreement | None
    """The peer as it runs against itself on that copy: its own error."""
    continuation: tuple[int, ...]
    peer_continuation: tuple[int, ...]
    words: str
    peer_words: str

    @property
    def passed(self) -> bool:
        """Within the bars of the peer as it runs; or of its exact answer, and then no further from it than the peer is.

        Greedy continuations may part where two tokens are nearly equal, so they decide nothing.
        """
        closer = False
        if self.exact is not None and self.peer_exact is not None:
            closer = self.exact.within_bars and self.exact.mean_kl <= self.peer_exact.mean_kl
        return self.same_ids and (self.agreement.within_bars or closer)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a GGUF file")
    parser.add_argument("--nt", metavar="N", type=int, default=512, help="tokens of the text (default 512)")
    parser.add_argument("--text", metavar="FILE", type=Path, help="another text than the one that comes along")
    parser.add_argument("--continue", dest="steps", metavar="N", type=int, default=24, help="greedy tokens (default 24)")
    parser.add_argument("--backend", choices=("auto", "numpy", "cuda"), default="auto", help="of the engine")
    parser.add_argument("--gates", metavar="A=1,B=0", default="", help="of the engine")
    parser.add_argument(
        "--exact", action=argparse.BooleanOptionalAction, default=None,
        help="also run the peer on a float32 copy of the weights (default: where it takes at most 2 GiB of disk)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the comparison. 0: within the bars; 1: not; 2: no comparison (one line on stderr)."""
    if args.nt < 2 or args.steps < 0:
        raise UserFacingError(f"--nt {args.nt} --continue {args.steps}: expected at least 2 tokens and no negative count")
    gates = dict(part.split("=", 1) for part in args.gates.split(",") if "=" in part)
    engine = MeasuredEngine(args.model, EngineOptions(args.backend, gates=gates))
    options = PeerOptions(
        nt=args.nt + args.steps, threads=len(os.sched_getaffinity(0)), gpu_layers=999 if engine.backend == "cuda" else 0
    )
    parity = _compare(args, engine, options)
    print(json.dumps(_as_json(parity), indent=1) if args.json else rendered(parity))
    return 0 if parity.passed else 1


def _compare(args: argparse.Namespace, engine: MeasuredEngine, options: PeerOptions) -> Parity:
    with LlamaCpp(args.model, options) as peer:
        tokens, peer_tokens, name = _tokens(args, engine, peer)
        start = tokens[: min(_CONTINUED, len(tokens))]
        theirs = _greedy(lambda ids: int(np.argmax(peer.logits(ids)[-1])), start, args.steps)
        peer_logits, peer_name = peer.logits(tokens), f"{peer.name} {peer.version}"
    ours, logits = engine.greedy(start, args.steps), engine.logits(tokens)
    exact = _exact_logits(args.exact, engine, options, tokens)
    return Parity(
        model=args.model.name,
        engine=f"{engine.name} {engine.version} ({engine.backend})",
        peer=peer_name,
        text=name,
        same_ids=tokens == peer_tokens,
        agreement=compare_logits(tokens, logits, peer_logits),
        exact=None if exact is None else compare_logits(tokens, logits, exact),
        peer_exact=None if exact is None else compare_logits(tokens, peer_logits, exact),
        continuation=tuple(ours),
        peer_continuation=tuple(theirs),
        words=engine.text(ours),
        peer_words=engine.text(theirs),
    )


def _exact_logits(
    asked: bool | None, engine: MeasuredEngine, options: PeerOptions, tokens: list[int]
) -> NDArray[np.float32] | None:
    weights = engine.weights()
    size = float32_bytes(weights)
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free
    if asked is False or (asked is None and size > min(_COPIED_UNASKED, free // 2)):
        return None
    if size > free:
        raise UserFacingError(f"{folder}: the float32 copy needs {size / 1e9:.1f} GB, {free / 1e9:.1f} are free; set TMPDIR")
    with tempfile.TemporaryDirectory(prefix="minfer-parity-") as scratch:
        path = Path(scratch) / "float32.gguf"
        write_float32_copy(path, engine.metadata(), weights, engine.float32_weights())
        with LlamaCpp(path, options) as peer:
            return peer.logits(tokens)


def _tokens(args: argparse.Namespace, engine: MeasuredEngine, peer: LlamaCpp) -> tuple[list[int], list[int], str]:
    """The text's first ids by the engine's tokenizer and by the peer's; random ids for a file without vocabulary."""
    if not engine.has_vocabulary:
        drawn = np.random.default_rng(0).integers(0, engine.vocabulary, args.nt).tolist()
        return drawn, drawn, "random tokens, since the file has no vocabulary"
    path = args.text or _TEXT
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserFacingError(f"{path}: cannot be read as UTF-8 text ({error}); give another --text") from error
    ids, peer_ids = engine.tokenize(text), peer.tokenize(text)
    if len(ids) < args.nt:
        raise UserFacingError(f"{path}: is {len(ids)} tokens long, expected {args.nt} or more; give a longer --text")
    return ids[: args.nt], peer_ids[: args.nt], path.name


def _greedy(choose: Callable[[Sequence[int]], int], start: Sequence[int], steps: int) -> list[int]:
    """Continue by the whole prefix each time: slow, but the peer needs no more than its logits."""
    ids = list(start)
    for _ in range(steps):
        ids.append(choose(ids))
    return ids[len(start) :]


def rendered(parity: Parity) -> str:
    """The comparison as lines for a terminal."""
    common = common_prefix(parity.continuation, parity.peer_continuation)
    bars = f"±{100 * PERPLEXITY_BAR:g} % and {MEAN_KL_BAR:g}"
    lines = [
        f"{parity.model}: {parity.engine} against {parity.peer}, nt = {parity.agreement.tokens} ({parity.text})",
        f"  token ids: {'the same' if parity.same_ids else 'DIFFERENT; the logits below are of our ids'}",
        f"  perplexity, its difference (bar and bar of the mean KL divergence: {bars} nats), same top token:",
        _line("ours against the peer", parity.agreement),
    ]
    if parity.exact is not None and parity.peer_exact is not None:
        lines += [
            _line("ours against the peer on float32 weights", parity.exact),
            _line("the peer against itself on float32 weights", parity.peer_exact),
        ]
    if parity.continuation:
        lines += [
            f"  greedy continuation, the same for {common} of {len(parity.continuation)} tokens",
            f"    ours {parity.words!r}",
            f"    peer {parity.peer_words!r}",
        ]
    return "\n".join([*lines, f"  {'within' if parity.passed else 'NOT within'} the bars"])


def _line(what: str, seen: Agreement) -> str:
    over = "" if seen.within_bars else "  OVER A BAR"
    return (
        f"    {what:<43} {seen.perplexity:.4f} {seen.peer_perplexity:.4f}  {100 * seen.perplexity_difference:+.3f} % "
        f"(s.e. {100 * seen.perplexity_error:.3f})  KL {seen.mean_kl:.2e}, largest {seen.largest_kl:.2e}  "
        f"{100 * seen.same_top:.1f} %{over}"
    )


def _as_json(parity: Parity) -> dict[str, object]:
    return {
        **asdict(parity),
        "perplexity_difference": parity.agreement.perplexity_difference,
        "bars": {"perplexity": PERPLEXITY_BAR, "mean_kl": MEAN_KL_BAR},
        "passed": parity.passed,
    }
