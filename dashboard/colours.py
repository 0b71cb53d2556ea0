"""One colour for each kernel class on every screen, told apart by colour-blind eyes on a light and on a dark ground.

The hues are those of Paul Tol's bright, vibrant and muted sets (https://sronpersonalpages.nl/~pault/), at a lightness
that keeps 3:1 against white and against #171614 where the class is a large one. What is no kernel's work (gaps, copies,
unclassified) also has a hatch, so that it is known without any colour.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ink:
    colour: str
    hatch: str = ""
    """One of marks.js' hatches; empty for a plain fill."""


GAP_PREFIX = "gap: "
COPY = "copy-only"
"""Time in which the device copies and runs no kernel. A kernel class is called "copy" too: kernels that move values."""
UNCLASSIFIED = "unclassified"

_INKS: dict[str, Ink] = {
    "q4_K GEMM": Ink("#4477AA"),
    "q6_K GEMM": Ink("#EE7733"),
    "q5_K GEMM": Ink("#8F7CC3"),
    "q4_0 GEMM": Ink("#6FA8DC"),
    "q4_1 GEMM": Ink("#5B9BD5"),
    "q5_0 GEMM": Ink("#66CCEE"),
    "q5_1 GEMM": Ink("#77AADD"),
    "q8_0 GEMM": Ink("#8F7CC3"),
    "f16 GEMM": Ink("#9A8CD0"),
    "bf16 GEMM": Ink("#9A8CD0"),
    "GEMM": Ink("#9A80EC"),
    "f32 GEMM": Ink("#9A80EC"),
    "attention": Ink("#CC3377"),
    "activation quantise": Ink("#CCBB44"),
    "weight dequantise": Ink("#8A2BE2"),
    "norm": Ink("#228833"),
    "rope": Ink("#44AA99"),
    "elementwise": Ink("#8FAF3C"),
    "kv write": Ink("#8C564B"),
    "embedding": Ink("#B8A05A"),
    "logits": Ink("#EE99AA"),
    "copy": Ink("#5B8AA6"),
    COPY: Ink("#8C8C8C", "x"),
    UNCLASSIFIED: Ink("#D62728", "x"),
    "other small classes": Ink("#A9A9B5", "."),
    "not published": Ink("#B5B5B5", "."),
    GAP_PREFIX + "host-late": Ink("#9E9E9E", "/"),
    GAP_PREFIX + "queued": Ink("#9E9E9E", "\\"),
    GAP_PREFIX + "host code": Ink("#9E9E9E", "-"),
    GAP_PREFIX + "unknown": Ink("#9E9E9E", "."),
}
# The ledger's and the queue's own words for the same things.
_ALIASES = {"gap": GAP_PREFIX + "unknown"}
_RESERVE = ("#0099AA", "#997700", "#7788CC", "#BB5566", "#5FA052", "#AA4499", "#C08040", "#4F9DA6")

# Peers and the engine itself, in that order of the eye: ours is the strong one.
ENGINES: dict[str, str] = {"minfer": "#4477AA", "llama.cpp": "#EE7733", "transformers": "#228833", "llama-bench": "#B35900"}

# Teal and red differ in blueness and lightness, which every kind of colour-blindness leaves.
BETTER = "#009988"
WORSE = "#CC3311"
UNDECIDED = "#8C8C8C"
# Two things set side by side, neither of them the better one.
SIDES = ("#4477AA", "#EE7733")


def ink(kernel_class: str) -> Ink:
    """The ink of a class; one that nobody foresaw gets the same reserve colour on every screen, by its name."""
    known = _INKS.get(_ALIASES.get(kernel_class, kernel_class))
    if known is not None:
        return known
    if kernel_class.startswith(GAP_PREFIX):
        return _INKS[GAP_PREFIX + "unknown"]
    return Ink(_RESERVE[zlib.crc32(kernel_class.encode()) % len(_RESERVE)], "-")


def stacking_order(names: list[str]) -> list[str]:
    """Kernel classes in the catalogue's order, then unforeseen ones by name, then unclassified, copy and gaps on top."""
    known = list(_INKS)

    def rank(name: str) -> tuple[int, int, str]:
        if name == UNCLASSIFIED:
            return (2, 0, name)
        if name == COPY:
            return (3, 0, name)
        if name.startswith(GAP_PREFIX):
            return (4, 0, name)
        return (0, known.index(name), name) if name in _INKS else (1, 0, name)

    return sorted(set(names), key=rank)


def engine_colour(engine: str) -> str:
    return ENGINES.get(engine) or _RESERVE[zlib.crc32(engine.encode()) % len(_RESERVE)]
