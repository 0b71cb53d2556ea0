"""``minfer inspect``: what is in a file, what mix it is, and what work it is; and which gates the engine has."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np

from ..description import file_type, model_type, parameters, quantisation_mix, weight_bytes, work_by_class
from ..errors import MinferError
from ..gates import GATES, GateValue, parse_settings, resolve
from ..gguf import GgufFile, open_gguf
from ..tables import binary_size, text_table
from ._engine import positive

SUMMARY = "show a file's metadata, tensors, quantisation mix and GMAC per token by class; or the engine's gates"

_LONGEST = 100
_SHOWN_ITEMS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="a GGUF model; of a split one, any part")
    parser.add_argument("--nt", type=positive, default=512, metavar="N", help="prompt tokens of the work (default 512)")
    parser.add_argument("-ub", "--ubatch", type=positive, default=512, metavar="N", help="tokens run at once (default 512)")
    parser.add_argument("--gates", action="store_true", help="show every gate, its value here and what it does")
    parser.add_argument("--gate", action="append", default=[], metavar="NAME=VALUE", help="with --gates: as if set so")
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(args: argparse.Namespace) -> int:
    if args.gates:
        gates = _gates(parse_settings(",".join(args.gate)))
        print(json.dumps(gates, indent=2) if args.json else _gate_table(gates))
    if args.file is None:
        if args.gates:
            return 0
        raise MinferError("no FILE; give a GGUF model, or --gates alone")
    file = open_gguf(args.file)
    work, unsupported = _work(args.file, args.nt, args.ubatch)
    if args.json:
        print(json.dumps(_as_json(file, args.nt, work, unsupported), indent=2, ensure_ascii=False))
        return 0
    mix = quantisation_mix(file)
    total = weight_bytes(file)
    print(f"{args.file}: {model_type(file)}, {binary_size(file.nbytes)}, GGUF {file.version}, {len(file.parts)} file(s)")
    bits = 8 * total / max(1, parameters(file))
    print(f"{len(file.tensors)} tensors, {parameters(file):,} parameters, {bits:.2f} bits each")
    print("\nmetadata")
    for key, value in file.metadata.items():
        print(f"  {key:<48} {_brief(value)}")
    print("\nquantisation mix")
    rows = [
        (e.quantisation, str(e.tensors), f"{e.parameters:,}", binary_size(e.nbytes), f"{100 * e.nbytes / total:.1f} %")
        for e in mix
    ]
    print(text_table(("type", "tensors", "parameters", "size", "share"), rows))
    print(f"\nwork of a prefill of nt = {args.nt} tokens, ubatch {args.ubatch}")
    print(f"  not known: {unsupported}" if unsupported else _work_table(work, args.nt))
    print("\ntensors")
    listed = [(t.name, _shape(t.shape), t.type.name, binary_size(t.nbytes)) for t in file.tensors.values()]
    print(text_table(("name", "shape", "type", "size"), listed))
    return 0


def _work(path: str, nt: int, ubatch: int) -> tuple[list[dict[str, Any]], str]:
    """The work by class; or why the engine cannot say it, which is no reason not to show the rest."""
    from ..model import load

    try:
        operations = load(path, backend="numpy", context=1).operations(nt, ubatch)
    except MinferError as error:
        return [], str(error)
    return [asdict(work) for work in work_by_class(operations)], ""


def _work_table(work: list[dict[str, Any]], nt: int) -> str:
    total = sum(one["macs"] for one in work)
    rows = [
        (
            one["kernel_class"], str(one["operations"]), f"{one['macs'] / 1e9:,.3f}", f"{one['macs'] / nt / 1e9:.6f}",
            f"{100 * one['macs'] / max(1, total):.2f} %", binary_size(one["bytes"]),
        )
        for one in work
    ]  # fmt: skip
    rows.append(("total", str(sum(o["operations"] for o in work)), f"{total / 1e9:,.3f}", f"{total / nt / 1e9:.6f}", "", ""))
    return text_table(("class", "operations", "GMAC", "GMAC per token", "share", "least bytes"), rows)


def _gates(overrides: dict[str, str]) -> list[dict[str, Any]]:
    known = {gate.name: gate for gate in GATES}
    values: dict[str, GateValue] = {}
    for backend in sorted({gate.backend for gate in GATES}):
        own = {name: value for name, value in overrides.items() if name not in known or known[name].backend == backend}
        values |= resolve(backend, own)
    return [
        {
            "name": gate.name, "backend": gate.backend, "value": values[gate.name], "default": gate.default,
            "takes": gate.takes(), "meaning": gate.meaning,
        }
        for gate in GATES
    ]


def _gate_table(gates: list[dict[str, Any]]) -> str:
    titles = ("name", "backend", "value", "default", "takes", "meaning")
    return text_table(titles, [tuple(_gate_value(gate[title]) for title in titles) for gate in gates])


def _gate_value(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _as_json(file: GgufFile, nt: int, work: list[dict[str, Any]], unsupported: str) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "parts": [str(part) for part in file.parts],
        "version": file.version,
        "bytes": file.nbytes,
        "model_type": model_type(file),
        "file_type": file_type(file),
        "parameters": parameters(file),
        "metadata": {key: _plain(value) for key, value in file.metadata.items()},
        "mix": [asdict(entry) for entry in quantisation_mix(file)],
        "nt": nt,
        "work": work,
        "work_unknown": unsupported or None,
        "tensors": [
            {"name": t.name, "shape": list(t.shape), "type": t.type.name, "bytes": t.nbytes} for t in file.tensors.values()
        ],
    }


def _plain(value: Any) -> Any:
    """Scalars as they are; of an array, its length: a vocabulary would bury the rest."""
    return value if isinstance(value, str | int | float | bool) else {"items": len(value)}


def _brief(value: Any) -> str:
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        shown = ", ".join(repr(getattr(item, "item", lambda item=item: item)()) for item in value[:_SHOWN_ITEMS])
        return _cut(f"{len(value)} items: {shown}{', ...' if len(value) > _SHOWN_ITEMS else ''}")
    return _cut(repr(value) if isinstance(value, str) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _shape(shape: tuple[int, ...]) -> str:
    return f"{' x '.join(map(str, shape))} = {prod(shape):,}"
