"""``minfer run``: continue a text, or answer in a conversation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from ..chat import ChatTemplate
from ..errors import MinferError
from ..generate import Generation
from ..model import Engine
from ..sampling import Sampler, Sampling
from ..tokenizer import Tokenizer
from ._engine import add_engine_options, load_engine, natural, positive

SUMMARY = "continue a text, or answer in a conversation (--chat)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_engine_options(parser)
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("-p", "--prompt", metavar="TEXT", help="the text to continue; without it, standard input is read")
    prompt.add_argument("-f", "--prompt-file", metavar="FILE", help="read it from a file")
    prompt.add_argument("--ids", metavar="1,2,3", help="token ids instead of a text")
    parser.add_argument("--chat", action="store_true", help="use the model's chat template; without a text, converse")
    parser.add_argument("--system", metavar="TEXT", help="the system message of a chat")
    parser.add_argument("-n", "--tokens", type=natural, metavar="N", help="most tokens to generate (default: until it ends)")
    parser.add_argument("-c", "--context", type=positive, metavar="N", help="most tokens of prompt and answer together")
    defaults = Sampling()
    parser.add_argument("--temp", type=float, default=defaults.temperature, metavar="T", help="0 is greedy")
    parser.add_argument("--top-k", type=int, default=defaults.top_k, metavar="K", help="default %(default)s; 0 keeps all")
    parser.add_argument("--top-p", type=float, default=defaults.top_p, metavar="P", help="default %(default)s")
    parser.add_argument("--min-p", type=float, default=defaults.min_p, metavar="P", help="default %(default)s")
    parser.add_argument("--seed", type=int, metavar="S", help="makes a draw repeatable")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end where this text comes; repeatable")
    parser.add_argument("--ignore-end", action="store_true", help="go on after tokens that end a generation")
    parser.add_argument("--special", action="store_true", help="show control tokens")
    parser.add_argument("-q", "--quiet", action="store_true", help="no figures on standard error")


def run(args: argparse.Namespace) -> int:
    options = Sampling(args.temp, args.top_k, args.top_p, args.min_p, args.seed)
    text = _text(args)
    if args.system is not None and not args.chat:
        raise MinferError("--system needs --chat; a plain text has no system message")
    engine = load_engine(args, args.context)
    tokenizer = Tokenizer.from_metadata(engine.file.metadata, args.file)
    for warning in tokenizer.vocabulary.warnings:
        print(f"minfer run: {warning}", file=sys.stderr)
    sampler = Sampler(options)

    def answer(prompt: list[int]) -> str:
        return _generate(args, engine, tokenizer, prompt, sampler)

    if args.chat:
        _converse(args, ChatTemplate(engine.file.metadata, tokenizer, args.file), text, answer)
    elif args.ids is not None:
        answer(_ids(args.ids))
    elif text is not None:
        answer(tokenizer.encode(text))
    else:
        answer(tokenizer.encode(_standard_input()))
    return 0


def _converse(
    args: argparse.Namespace, template: ChatTemplate, text: str | None, answer: Callable[[list[int]], str]
) -> None:
    messages = [] if args.system is None else [{"role": "system", "content": args.system}]
    while True:
        said = text if text is not None else _line()
        if said is None:
            return
        messages.append({"role": "user", "content": said})
        messages.append({"role": "assistant", "content": answer(template.encode(messages))})
        if text is not None:
            return


def _generate(args: argparse.Namespace, engine: Engine, tokenizer: Tokenizer, prompt: list[int], sampler: Sampler) -> str:
    generation = Generation(
        engine, tokenizer, prompt, sampler,
        limit=args.tokens, stops=args.stop, special=args.special, ignore_end=args.ignore_end,
    )  # fmt: skip
    parts = []
    for part in generation:
        parts.append(part)
        print(part, end="", flush=True)
    print(flush=True)
    if not args.quiet:
        print(_figures(generation, sampler, args.temp == 0), file=sys.stderr)
    return "".join(parts)


def _figures(generation: Generation, sampler: Sampler, greedy: bool) -> str:
    decoded = max(0, len(generation.tokens) - 1)
    figures = f"prompt {len(generation.prompt)} tokens, {len(generation.prompt) / generation.prefill_ns * 1e9:.1f} tok/s"
    if generation.decode_ns:
        figures += f"; decode {decoded} tokens, {decoded / generation.decode_ns * 1e9:.1f} tok/s"
    return f"[{figures}; ended by {generation.reason}{'' if greedy else f'; seed {sampler.seed}'}]"


def _text(args: argparse.Namespace) -> str | None:
    if args.prompt_file is None:
        return args.prompt if args.prompt is None else str(args.prompt)
    try:
        return Path(args.prompt_file).read_text(encoding="utf-8")
    except OSError as error:
        raise MinferError(f"{args.prompt_file}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise MinferError(f"{args.prompt_file}: not valid UTF-8 at byte {error.start}; give a text file") from error


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise MinferError(f"--ids is {text!r}, expected whole numbers with commas between them, such as 1,2,3") from error


def _standard_input() -> str:
    if sys.stdin.isatty():
        raise MinferError("no prompt; give -p TEXT, -f FILE or --ids, or pipe a text in")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise MinferError(f"standard input: not valid UTF-8 at byte {error.start}; give a text") from error


def _line() -> str | None:
    """The next thing that the user says; None at the end of input."""
    try:
        return input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None
