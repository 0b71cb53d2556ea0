"""The options that every command with an engine shares."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..gates import parse_settings

if TYPE_CHECKING:
    from ..model import Engine


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """FILE, --backend, --ubatch, --gate."""
    parser.add_argument("file", metavar="FILE", help="a GGUF model; of a split one, any part")
    parser.add_argument("--backend", choices=("auto", "numpy", "cuda"), default="auto", help="default: cuda where it works")
    parser.add_argument("-ub", "--ubatch", type=positive, metavar="N", help="tokens run at once")
    parser.add_argument(
        "--gate", action="append", default=[], metavar="NAME=VALUE", help="set a gate; `minfer inspect --gates` lists them"
    )


def load_engine(args: argparse.Namespace, context: int | None) -> Engine:
    """The engine that the options describe."""
    from ..model import load

    gates = parse_settings(",".join(args.gate))
    return load(args.file, backend=args.backend, ubatch=args.ubatch, context=context, gates=gates)


def positive(text: str) -> int:
    """A whole number of at least 1, as argparse wants it."""
    return _whole(text, 1)


def natural(text: str) -> int:
    """A whole number of at least 0."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
    return value
