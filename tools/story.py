"""What happens in the made-up campaign: which commit changes what, and what it says of itself beforehand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One commit of the story: from it on, these costs are multiplied."""

    at: float
    """Place in the history, 0 to 1."""
    subject: str
    factors: dict[str, float]
    body: str = ""


STORY = (
    Step(
        0.12,
        "q4_K: transpose the quantised activations once",
        {"q4_K GEMM": 0.86},
        "Predicts: q4_K GEMM -14 % @3325",
    ),
    Step(
        0.30,
        "q6_K: read raw bytes, unpack in registers",
        {"q6_K GEMM": 0.38, "activation quantise": 1.9},
        "Predicts: q6_K GEMM -60 % @3325",
    ),
    Step(0.45, "Fuse rope into the kv write", {"rope": 0.2, "kv write": 1.1}, "Predicts: rope -80 % @3325"),
    Step(
        0.58,
        "q6_K: ldmatrix supply for the B fragments",
        {"q6_K GEMM": 0.55},
        "Predicts: q6_K GEMM -30 % @3325",
    ),
    Step(0.70, "Tidy the norm kernel's launch bounds", {"norm": 1.7}),
    Step(0.80, "Capture the prefill in one CUDA graph", {"gap": 0.25}, "Predicts: wall -12 % @512"),
    Step(0.90, "Attention: two warps a query block", {"attention": 0.62}, "Predicts: attention -50 % @3325"),
)
HOSTILE_SUBJECT = (
    '<script>alert("x")</script> ![img](http://192.0.2.1/x.png) **bold** $x^2$ :red[hi] [l](javascript:alert(1))'
)
ORDINARY = (
    "Name the shapes in the loader's errors",
    "Type the tokenizer",
    "Read the mask once",
    "Docs: how a kernel is added",
    "Move the launch sizes to one table",
    "Test prompts of length one",
)
