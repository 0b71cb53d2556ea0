"""``python -m benchmarks parity MODEL``: are the engine's answers llama.cpp's, on the user's own weights?"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..attribution.agreement import MEAN_KL_BAR, PERPLEXITY_BAR, Agreement, combined, common_prefix, compare_logits
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
    def closer(self) -> bool:
        """Within the bars of the peer's exact answer, and no further from it than the peer is as it runs."""
        if self.exact is None or self.peer_exact is None:
            return False
        return self.exact.within_bars and self.exact.mean_kl <= self.peer_exact.mean_kl

    @property
    def passed(self) -> bool:
        """Within the bars of the peer as it runs, or closer to its exact answer than the peer is.

        Greedy continuations may part where two tokens are nearly equal, so they decide nothing.
        """
        return self.same_ids and (self.agreement.within_bars or self.closer)

    @property
    def verdict(self) -> str:
        """One line: how it came out, and on what ground. What too few tokens cannot tell is said, and is no pass."""
        seen, told = self.agreement, ""
        if not seen.decided:
            told = f" ({seen.tokens} tokens cannot tell this perplexity from one at the bar; {seen.tokens_to_decide} would)"
        if not self.same_ids:
            return "NOT within the bars: the tokenizers differ"
        if self.closer:
            assert self.peer_exact is not None
            own = f"{100 * self.peer_exact.perplexity_difference:+.3f} % and {self.peer_exact.mean_kl:.2e} nats"
            return f"within the bars of the peer's exact answer, from which the peer itself is {own} away as it runs"
        if seen.within_bars:
            return f"within the bars of the peer as it runs{told}"
        far_from_exact = self.exact is not None and self.exact.decided and not self.exact.within_bars
        if not seen.decided and seen.mean_kl < MEAN_KL_BAR and not far_from_exact:
            return f"UNDECIDED{told}: give --chunks, or let --exact decide"
        return "NOT within the bars"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a GGUF file")
    parser.add_argument("--nt", metavar="N", type=int, default=512, help="tokens of a stretch of text (default 512)")
    parser.add_argument(
        "--chunks", metavar="N", type=int, default=1, help="stretches, each from an empty context (default 1)"
    )
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
    if args.nt < 2 or args.steps < 0 or args.chunks < 1:
        raise UserFacingError(
            f"--nt {args.nt} --continue {args.steps} --chunks {args.chunks}: expected at least 2 tokens, 1 chunk and no "
            f"negative count"
        )
    gates = dict(part.split("=", 1) for part in args.gates.split(",") if "=" in part)
    engine = MeasuredEngine(args.model, EngineOptions(args.backend, gates=gates))
    options = PeerOptions(
        nt=args.nt + args.steps, threads=len(os.sched_getaffinity(0)), gpu_layers=999 if engine.backend == "cuda" else 0
    )
    parity = _compare(args, engine, options)
    print(json.dumps(_as_json(parity), indent=1) if args.json else rendered(parity))
    return 0 if parity.passed else 1


def _compare(args: argparse.Namespace, engine: MeasuredEngine, options: PeerOptions) -> Parity:
    with ExitStack() as opened:
        peer = opened.enter_context(LlamaCpp(args.model, options))
        tokens, peer_tokens, name = _tokens(args, engine, peer)
        start = tokens[: min(_CONTINUED, args.nt)]
        theirs = _greedy(lambda ids: int(np.argmax(peer.logits(ids)[-1])), start, args.steps)
        ours = engine.greedy(start, args.steps)
        exact_peer = _exact_peer(args.exact, engine, options, opened)
        parts = [_judged(tokens[at : at + args.nt], engine, peer, exact_peer) for at in range(0, len(tokens), args.nt)]
        exact = [part.exact for part in parts if part.exact is not None]
        peer_exact = [part.peer_exact for part in parts if part.peer_exact is not None]
        return Parity(
            model=args.model.name,
            engine=f"{engine.name} {engine.version} ({engine.backend})",
            peer=f"{peer.name} {peer.version}",
            text=name,
            same_ids=tokens == peer_tokens,
            agreement=combined([part.agreement for part in parts]),
            exact=combined(exact) if exact else None,
            peer_exact=combined(peer_exact) if peer_exact else None,
            continuation=tuple(ours),
            peer_continuation=tuple(theirs),
            words=engine.text(ours),
            peer_words=engine.text(theirs),
        )


@dataclass(frozen=True, slots=True)
class _Judged:
    """One stretch of the text; see ``Parity``."""

    agreement: Agreement
    exact: Agreement | None
    peer_exact: Agreement | None


def _judged(tokens: list[int], engine: MeasuredEngine, peer: LlamaCpp, exact_peer: LlamaCpp | None) -> _Judged:
    logits, peer_logits = engine.logits(tokens), peer.logits(tokens)
    agreement = compare_logits(tokens, logits, peer_logits)
    if exact_peer is None:
        return _Judged(agreement, None, None)
    exact = exact_peer.logits(tokens)
    return _Judged(agreement, compare_logits(tokens, logits, exact), compare_logits(tokens, peer_logits, exact))


def _exact_peer(asked: bool | None, engine: MeasuredEngine, options: PeerOptions, opened: ExitStack) -> LlamaCpp | None:
    """The peer on a float32 copy of the weights, which is deleted when ``opened`` is left; None where it is not wanted."""
    weights = engine.weights()
    size = float32_bytes(weights)
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free
    if asked is False or (asked is None and size > min(_COPIED_UNASKED, free // 2)):
        return None
    if size > free:
        raise UserFacingError(f"{folder}: the float32 copy needs {size / 1e9:.1f} GB, {free / 1e9:.1f} are free; set TMPDIR")
    path = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="minfer-parity-"))) / "float32.gguf"
    write_float32_copy(path, engine.metadata(), weights, engine.float32_weights())
    return opened.enter_context(LlamaCpp(path, options))


def _tokens(args: argparse.Namespace, engine: MeasuredEngine, peer: LlamaCpp) -> tuple[list[int], list[int], str]:
    """The text's first ids by the engine's tokenizer and by the peer's; random ids for a file without vocabulary."""
    wanted = args.nt * args.chunks
    if not engine.has_vocabulary:
        drawn = np.random.default_rng(0).integers(0, engine.vocabulary, wanted).tolist()
        return drawn, drawn, "random tokens, since the file has no vocabulary"
    path = args.text or _TEXT
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserFacingError(f"{path}: cannot be read as UTF-8 text ({error}); give another --text") from error
    ids, peer_ids = engine.tokenize(text), peer.tokenize(text)
    if len(ids) < wanted:
        raise UserFacingError(f"{path}: is {len(ids)} tokens long, expected {wanted} or more; give a longer --text")
    return ids[:wanted], peer_ids[:wanted], path.name


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
    return "\n".join([*lines, f"  {parity.verdict}"])


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
        "verdict": parity.verdict,
    }
