"""The campaign rounds r37 and r47 as records, from their published figures: the example that the core must reproduce.

A publication gives some classes only. The rest of busy is a class of its own, NOT_PUBLISHED, so that each wall closes and
nobody reads the missing classes as zero.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .ledger import NOT_PUBLISHED
from .macs import GMAC
from .record import Check, ClassTime, Decomposition, Machine, Model, Record, Split, Wall, Window
from .recover import tokens_per_second

FIGURES = Path(__file__).parents[1] / "data" / "r37.json"
_MODEL_DIGEST = "not published"
_MS = 1_000_000
MAX_PUBLISHED_DISAGREEMENT = 0.002
"""Two published figures that should follow from each other may differ by this share; the difference is on the record."""
_LAUNCHES = {"q6_K GEMM": 27, "q4_K GEMM": 166, "attention": 28}
"""A pass over this shape and mix, counted in llama.cpp's traces of it; the publication counts ffn_down's 13 only."""
_NOTES = (
    "as published by the campaign's author on other hardware; not measured by this suite",
    "GMAC and launch counts follow from the published model shape; only ffn_down's 13 launches were published",
    "the classes that were not published stand together as one",
)


def figures(path: Path = FIGURES) -> dict[str, Any]:
    """The figures as published, under the names of docs/glossary.md."""
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def r37_record(data: dict[str, Any] | None = None) -> Record:
    """Round r37: wall, busy and gap as published, and llama.cpp's wall from the published ratio."""
    data = figures() if data is None else data
    published = data["r37"]
    known = published["classes_ms"]
    classes = [_class(name, ms, data) for name, ms in known.items()]
    down = published["ffn_down"]
    q6_k = classes[0]
    splits = (
        Split("ffn_down", _ns(down["ms"]), down["launches"], quantisation="q6_K"),
        Split("attn_v", q6_k.ns - _ns(down["ms"]), q6_k.launches - down["launches"], quantisation="q6_K"),
    )
    classes[0] = ClassTime(q6_k.name, q6_k.ns, q6_k.launches, q6_k.macs, splits=splits)
    wall = _wall(published, classes, _ns(published["busy_ms"]))
    target = data["price_tag"]["target_us_per_gmac_as_published"]
    cost = 2000 / published["q4_K_tflops"]
    notes = (
        *_NOTES,
        f"q6_K was priced at {target:.0f} us per GMAC; q4_K's {published['q4_K_tflops']:.1f} TFLOP/s cost {cost:.1f}",
    )
    return _record(data, published["commit"], published["date"], (wall, _peer(published)), "r37", notes)


def r47_record(data: dict[str, Any] | None = None) -> Record:
    """Round r47. Its busy was not published: it follows from q6_K's share of it, to the rounding of that share."""
    data = figures() if data is None else data
    published = data["r47"]
    classes = [_class(name, ms, data) for name, ms in published["classes_ms"].items()]
    q6_k, share = published["classes_ms"]["q6_K GEMM"], published["share_of_busy"]["q6_K GEMM"]
    low, high = q6_k / (share + 0.0005), q6_k / (share - 0.0005)
    notes = (*_NOTES, f"busy follows from q6_K's share of it: {low:.1f} to {high:.1f} ms")
    wall = _wall(published, classes, _ns(q6_k / share))
    return _record(data, "r47", "not published", (wall, _peer(published)), "r47", notes)


def _class(name: str, ms: float, data: dict[str, Any]) -> ClassTime:
    gmac = data["gmac_at_3325"].get(name)
    return ClassTime(name, _ns(ms), _LAUNCHES[name], None if gmac is None else round(gmac * GMAC))


def _wall(published: dict[str, Any], classes: list[ClassTime], busy_ns: int) -> Wall:
    wall_ns = _ns(published["wall_ms"])
    rest = ClassTime(NOT_PUBLISHED, busy_ns - sum(item.ns for item in classes), 0)
    return Wall(
        engine="minfer",
        engine_version="as published",
        backend="cuda",
        nt=published["nt"],
        ubatch=published["nt"],
        gates={},
        samples_ns=(wall_ns,),
        decomposition=Decomposition(wall_ns, busy_ns, 0, {"unknown": wall_ns - busy_ns}, (*classes, rest)),
    )


def _peer(published: dict[str, Any]) -> Wall:
    wall_ns = round(_ns(published["wall_ms"]) / published["vs_llama"])
    return Wall(
        engine="llama.cpp",
        engine_version="as published",
        backend="cuda",
        nt=published["nt"],
        ubatch=published["nt"],
        gates={},
        samples_ns=(wall_ns,),
        why_not_decomposed="only the ratio of the walls was published",
    )


def _record(
    data: dict[str, Any], commit: str, time: str, walls: tuple[Wall, ...], window: str, notes: tuple[str, ...]
) -> Record:
    model = data["model"]
    return Record(
        commit=commit,
        commit_time=time,
        machine=Machine(data["machine"], "not published", 0, 0, "not published", "not published", gpu="GB10"),
        window=Window(window, time, time),
        instrument="nsys",
        instrument_version=1,
        model=Model(model["name"], _MODEL_DIGEST, model["architecture"], 0, {}),
        walls=walls,
        checks=(_published_rate(data[window]),),
        notes=notes,
    )


def _published_rate(published: dict[str, Any]) -> Check:
    """The published tok/s against tokens over the published wall."""
    ours = tokens_per_second(published["nt"], published["wall_ms"])
    off = published["tok_s"] / ours - 1
    detail = f"published {published['tok_s']}, {published['nt']} tokens / {published['wall_ms']:.1f} ms = {ours:.1f}"
    limit = MAX_PUBLISHED_DISAGREEMENT
    return Check("published tok/s agrees with its wall", abs(off) <= limit, off, limit, "share", detail)


def _ns(ms: float) -> int:
    return round(ms * _MS)
