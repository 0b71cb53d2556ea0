"""The shape of Qwen2.5-7B in the Q4_K_M mix, and the reader of the traces that llama.cpp made of it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from benchmarks.attribution.events import Copies, Launches, Trace
from benchmarks.attribution.macs import AttentionShape, TensorShape

LAYERS, HIDDEN, FFN, KV, VOCABULARY = 28, 3584, 18944, 512, 152064
ATTENTION = AttentionShape(heads=28, head_dim=128)


def _more_bits(block: int) -> bool:
    """Which blocks llama.cpp's Q4_K_M gives q6_K for attn_v and ffn_down: the outer eighths and every third between."""
    return block < LAYERS // 8 or block >= 7 * LAYERS // 8 or (block - LAYERS // 8) % 3 == 2


def tensors() -> list[TensorShape]:
    rows = []
    for block in range(LAYERS):
        richer = "q6_K" if _more_bits(block) else "q4_K"
        for role, n, k, kind in (
            ("attn_q", HIDDEN, HIDDEN, "q4_K"), ("attn_k", KV, HIDDEN, "q4_K"), ("attn_v", KV, HIDDEN, richer),
            ("attn_output", HIDDEN, HIDDEN, "q4_K"), ("ffn_gate", FFN, HIDDEN, "q4_K"), ("ffn_up", FFN, HIDDEN, "q4_K"),
            ("ffn_down", HIDDEN, FFN, richer),
        ):  # fmt: skip
            rows.append(TensorShape(f"blk.{block}.{role}.weight", n, k, kind))
        rows.append(TensorShape(f"blk.{block}.attn_norm.weight", HIDDEN, 1, "f32"))
    rows.append(TensorShape("token_embd.weight", VOCABULARY, HIDDEN, "q4_K"))
    rows.append(TensorShape("output.weight", VOCABULARY, HIDDEN, "q6_K"))
    return rows


def read_tsv(path: Path) -> Trace:
    """One of the .tsv.gz traces: K rows are kernels, M rows are copies."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    kernels = [row for row in rows if row[0] == "K"]
    copies = [row for row in rows if row[0] == "M"]
    names = tuple(dict.fromkeys(row[8] for row in kernels))
    number = {name: index for index, name in enumerate(names)}

    def column(table, index, kind=np.int64):
        return np.array([int(row[index]) for row in table], dtype=kind)

    return Trace(
        source_format="cupti tsv",
        names=names,
        launches=Launches(
            start=column(kernels, 1),
            end=column(kernels, 2),
            name=np.array([number[row[8]] for row in kernels], dtype=np.int32),
            device=np.zeros(len(kernels), np.int32),
            stream=np.zeros(len(kernels), np.int64),
            correlation=column(kernels, 7),
            grid=np.stack([column(kernels, axis, np.int32) for axis in (3, 4, 5)], axis=1),
        ),
        copies=Copies(
            start=column(copies, 1),
            end=column(copies, 2),
            device=np.zeros(len(copies), np.int32),
            stream=np.zeros(len(copies), np.int64),
            kind=column(copies, 4, np.int32),
            bytes=column(copies, 3),
        ),
    )


def second_half(trace: Trace) -> tuple[int, int]:
    """The timed run: each file holds the warm-up first, with as many kernels. From first start to last end."""
    half = len(trace.launches) // 2
    return int(trace.launches.start[half]), int(trace.launches.end.max())
